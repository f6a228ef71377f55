DROP TABLE labdata.agent_write_session;
