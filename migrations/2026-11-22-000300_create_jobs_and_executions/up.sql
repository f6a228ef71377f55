-- A script, or the name under which off-platform scripts run.
CREATE TABLE labdata.job (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL,
    name text NOT NULL,
    description text,
    archived boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL,
    -- Version used by the next run; null for a name of off-platform scripts.
    version_number bigint,
    -- Number of changes; an update names the state that its author has read.
    revision bigint NOT NULL DEFAULT 1,
    -- Parameters of runs, as the program writes them: a list of objects.
    parameter_definitions jsonb NOT NULL DEFAULT '[]',
    CONSTRAINT job_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES labdata.organization (id),
    CONSTRAINT job_name_key UNIQUE (organization_id, name),
    CONSTRAINT job_organization_id_id_key UNIQUE (organization_id, id)
);

CREATE INDEX job_list_idx ON labdata.job (organization_id, created_at DESC, id DESC);

-- One version of a job's script. Executions refer to it by its number.
CREATE TABLE labdata.job_version (
    job_id uuid NOT NULL,
    organization_id uuid NOT NULL,
    -- Counts from 1 within the job.
    version_number bigint NOT NULL,
    code text NOT NULL,
    created_by uuid NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT job_version_pkey PRIMARY KEY (organization_id, job_id, version_number),
    CONSTRAINT job_version_job_id_fkey
        FOREIGN KEY (organization_id, job_id) REFERENCES labdata.job (organization_id, id),
    CONSTRAINT job_version_created_by_fkey
        FOREIGN KEY (organization_id, created_by) REFERENCES labdata.app_user (organization_id, id),
    CONSTRAINT job_version_version_number_check CHECK (version_number >= 1)
);

CREATE INDEX job_version_created_by_idx ON labdata.job_version (organization_id, created_by);

-- One run of a job. Everything that it wrote is attributed to it.
CREATE TABLE labdata.job_execution (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL,
    job_id uuid NOT NULL,
    origin text NOT NULL,
    status text NOT NULL,
    -- The platform fails the execution at this time unless it is closed before.
    deadline timestamptz,
    error_message text,
    started_by uuid NOT NULL,
    -- The key that started it; no reference, as keys may be purged.
    api_key_id uuid,
    created_at timestamptz NOT NULL,
    started_at timestamptz,
    completed_at timestamptz,
    -- The columns from here on are those of runs on the platform.
    script_version bigint,
    -- The file of the run; no reference, as files may be deleted.
    trigger_file_id uuid,
    parameters jsonb,
    -- The execution whose end triggered this one.
    source_execution_id uuid,
    exit_code bigint,
    -- The trigger that started a run; no reference, as a trigger may be removed.
    trigger_id uuid,
    -- Scopes of the run's key.
    run_scopes text[],
    CONSTRAINT job_execution_job_id_fkey
        FOREIGN KEY (organization_id, job_id) REFERENCES labdata.job (organization_id, id),
    CONSTRAINT job_execution_started_by_fkey
        FOREIGN KEY (organization_id, started_by) REFERENCES labdata.app_user (organization_id, id),
    CONSTRAINT job_execution_organization_id_id_key UNIQUE (organization_id, id),
    CONSTRAINT job_execution_source_execution_id_fkey FOREIGN KEY (organization_id, source_execution_id)
        REFERENCES labdata.job_execution (organization_id, id),
    CONSTRAINT job_execution_origin_check CHECK (origin IN ('off_platform', 'data_write', 'platform')),
    CONSTRAINT job_execution_status_check
        CHECK (status IN ('queued', 'running', 'completed', 'failed', 'cancelled')),
    CONSTRAINT job_execution_completed_at_check
        CHECK ((status IN ('queued', 'running')) = (completed_at IS NULL)),
    CONSTRAINT job_execution_error_message_check CHECK (status = 'failed' OR error_message IS NULL),
    CONSTRAINT job_execution_run_check CHECK (
        CASE origin
            WHEN 'platform' THEN num_nulls(script_version, parameters, run_scopes) = 0
            ELSE status <> 'queued'
                AND num_nonnulls(
                    script_version, trigger_file_id, parameters, source_execution_id, exit_code, run_scopes) = 0
        END
    ),
    CONSTRAINT job_execution_run_scopes_check CHECK (run_scopes <@ ARRAY['read', 'write'])
);

CREATE INDEX job_execution_list_idx ON labdata.job_execution (organization_id, created_at DESC, id DESC);
CREATE INDEX job_execution_job_list_idx ON labdata.job_execution (organization_id, job_id, created_at DESC, id DESC);
CREATE INDEX job_execution_started_by_idx ON labdata.job_execution (organization_id, started_by);
CREATE INDEX job_execution_source_execution_id_idx ON labdata.job_execution (organization_id, source_execution_id)
    WHERE source_execution_id IS NOT NULL;
-- Deadlines for the sweeper; those of runs are their worker's.
CREATE INDEX job_execution_deadline_idx ON labdata.job_execution (deadline)
    WHERE status = 'running' AND origin <> 'platform' AND deadline IS NOT NULL;
-- Lists of the executions of a status that few have, in the order of lists. Most are completed, among them those of data
-- writes, which are so from the beginning and cost nothing more.
CREATE INDEX job_execution_status_list_idx ON labdata.job_execution (organization_id, status, created_at DESC, id DESC)
    WHERE status <> 'completed';
-- The runs of a file, in the order of lists. Data writes and most scripts have none and cost nothing more.
CREATE INDEX job_execution_file_list_idx
    ON labdata.job_execution (organization_id, trigger_file_id, created_at DESC, id DESC)
    WHERE trigger_file_id IS NOT NULL;
