DROP TABLE labdata.agent_write_session;

ALTER TABLE labdata.api_key DROP CONSTRAINT api_key_organization_id_id_key;
