-- A job's script as it was at one time; what ran it keeps naming it by its number.
CREATE TABLE labdata.job_version (
    job_id uuid NOT NULL,
    organization_id uuid NOT NULL,
    -- Counted from 1 within the job.
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

ALTER TABLE labdata.job
    -- The version that the next run uses; null where the job is only a name for off-platform scripts.
    ADD COLUMN version_number bigint,
    -- Counts changes: whoever changes a job says which state of it was read.
    ADD COLUMN revision bigint NOT NULL DEFAULT 1;
