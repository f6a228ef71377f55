DROP TABLE labdata.agent_write_session;
DROP TABLE labdata.agent_usage;
DROP TABLE labdata.agent_run;
DROP TABLE labdata.agent_chat_file;
DROP TABLE labdata.agent_message;
DROP TABLE labdata.agent_chat;
