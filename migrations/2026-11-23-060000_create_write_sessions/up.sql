-- Executions under which assistants write: one per API key, until the key pauses.
CREATE TABLE labdata.agent_write_session (
    api_key_id uuid PRIMARY KEY,
    organization_id uuid NOT NULL,
    execution_id uuid NOT NULL,
    last_used_at timestamptz NOT NULL,
    CONSTRAINT agent_write_session_api_key_id_fkey
        FOREIGN KEY (api_key_id) REFERENCES labdata.api_key (id) ON DELETE CASCADE,
    CONSTRAINT agent_write_session_execution_id_fkey
        FOREIGN KEY (organization_id, execution_id)
        REFERENCES labdata.job_execution (organization_id, id) ON DELETE CASCADE
);

CREATE INDEX agent_write_session_execution_idx
    ON labdata.agent_write_session (organization_id, execution_id);

CREATE INDEX agent_write_session_last_used_idx ON labdata.agent_write_session (last_used_at);
