DROP TABLE labdata.agent_message;
DROP TABLE labdata.agent_chat;
