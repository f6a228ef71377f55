-- References to a key name the organization too, so that they cannot cross organizations.
ALTER TABLE labdata.api_key ADD CONSTRAINT api_key_organization_id_id_key UNIQUE (organization_id, id);

-- Executions under which assistants write: one per API key, until the key pauses.
CREATE TABLE labdata.agent_write_session (
    organization_id uuid NOT NULL,
    api_key_id uuid NOT NULL,
    execution_id uuid NOT NULL,
    last_used_at timestamptz NOT NULL,
    PRIMARY KEY (organization_id, api_key_id),
    CONSTRAINT agent_write_session_api_key_id_fkey
        FOREIGN KEY (organization_id, api_key_id)
        REFERENCES labdata.api_key (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT agent_write_session_execution_id_fkey
        FOREIGN KEY (organization_id, execution_id)
        REFERENCES labdata.job_execution (organization_id, id) ON DELETE CASCADE
);

CREATE INDEX agent_write_session_execution_idx
    ON labdata.agent_write_session (organization_id, execution_id);

CREATE INDEX agent_write_session_last_used_idx ON labdata.agent_write_session (last_used_at);
