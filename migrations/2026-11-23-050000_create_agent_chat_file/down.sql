DROP TABLE labdata.agent_chat_file;
