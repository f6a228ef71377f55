CREATE TABLE labdata.job (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES labdata.organization (id),
    name text NOT NULL,
    description text,
    archived boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL,
    UNIQUE (organization_id, name),
    UNIQUE (organization_id, id)
);
CREATE INDEX job_list ON labdata.job (organization_id, created_at DESC, id DESC);

CREATE TABLE labdata.job_execution (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES labdata.organization (id),
    job_id uuid NOT NULL,
    origin text NOT NULL CHECK (origin IN ('off_platform', 'data_write')),
    status text NOT NULL CHECK (status IN ('running', 'completed', 'failed')),
    -- When the platform fails it unless it is closed before.
    deadline timestamptz,
    error_message text,
    started_by uuid NOT NULL,
    created_at timestamptz NOT NULL,
    started_at timestamptz,
    completed_at timestamptz,
    CHECK ((status = 'running') = (completed_at IS NULL)),
    UNIQUE (organization_id, id),
    FOREIGN KEY (organization_id, job_id) REFERENCES labdata.job (organization_id, id),
    FOREIGN KEY (organization_id, started_by) REFERENCES labdata.app_user (organization_id, id)
);
CREATE INDEX job_execution_list ON labdata.job_execution (organization_id, created_at DESC, id DESC);
CREATE INDEX job_execution_job ON labdata.job_execution (organization_id, job_id, created_at DESC, id DESC);
CREATE INDEX job_execution_user ON labdata.job_execution (organization_id, started_by);
CREATE INDEX job_execution_overdue ON labdata.job_execution (deadline) WHERE status = 'running' AND deadline IS NOT NULL;
