-- One run of a job, to which everything it wrote is attributed.
CREATE TABLE labdata.job_execution (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL,
    job_id uuid NOT NULL,
    origin text NOT NULL,
    status text NOT NULL,
    -- When the platform fails it unless it is closed before.
    deadline timestamptz,
    error_message text,
    started_by uuid NOT NULL,
    -- The key that started it, for the record: keys may be purged.
    api_key_id uuid,
    created_at timestamptz NOT NULL,
    started_at timestamptz,
    completed_at timestamptz,
    CONSTRAINT job_execution_job_id_fkey
        FOREIGN KEY (organization_id, job_id) REFERENCES labdata.job (organization_id, id),
    CONSTRAINT job_execution_started_by_fkey
        FOREIGN KEY (organization_id, started_by) REFERENCES labdata.app_user (organization_id, id),
    CONSTRAINT job_execution_organization_id_id_key UNIQUE (organization_id, id),
    CONSTRAINT job_execution_origin_check CHECK (origin IN ('off_platform', 'data_write')),
    CONSTRAINT job_execution_status_check CHECK (status IN ('running', 'completed', 'failed')),
    CONSTRAINT job_execution_completed_at_check CHECK ((status = 'running') = (completed_at IS NULL)),
    CONSTRAINT job_execution_error_message_check CHECK (status = 'failed' OR error_message IS NULL)
);

CREATE INDEX job_execution_list_idx ON labdata.job_execution (organization_id, created_at DESC, id DESC);
CREATE INDEX job_execution_job_list_idx ON labdata.job_execution (organization_id, job_id, created_at DESC, id DESC);
CREATE INDEX job_execution_started_by_idx ON labdata.job_execution (organization_id, started_by);
-- What the sweeper looks for.
CREATE INDEX job_execution_deadline_idx ON labdata.job_execution (deadline)
    WHERE status = 'running' AND deadline IS NOT NULL;
