-- What starts a job without anybody asking.
CREATE TABLE labdata.job_trigger (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL,
    job_id uuid NOT NULL,
    category text NOT NULL,
    instrument_id uuid,
    -- As they were given; the program reads them.
    conditions jsonb NOT NULL,
    -- The job of the conditions, where they name one.
    source_job_id uuid,
    -- Runs are in this user's name.
    set_by uuid NOT NULL,
    -- Since when it waits.
    armed_at timestamptz NOT NULL,
    -- The next tick of a schedule; whoever fires it moves it on in the same transaction.
    next_fire_at timestamptz,
    CONSTRAINT job_trigger_job_id_fkey
        FOREIGN KEY (organization_id, job_id) REFERENCES labdata.job (organization_id, id),
    CONSTRAINT job_trigger_instrument_id_fkey
        FOREIGN KEY (organization_id, instrument_id) REFERENCES labdata.instrument (organization_id, id),
    CONSTRAINT job_trigger_source_job_id_fkey
        FOREIGN KEY (organization_id, source_job_id) REFERENCES labdata.job (organization_id, id),
    CONSTRAINT job_trigger_set_by_fkey
        FOREIGN KEY (organization_id, set_by) REFERENCES labdata.app_user (organization_id, id),
    CONSTRAINT job_trigger_job_id_key UNIQUE (organization_id, job_id),
    CONSTRAINT job_trigger_category_check CHECK (category IN ('file_uploaded', 'job_completed', 'schedule')),
    CONSTRAINT job_trigger_instrument_id_check CHECK (category = 'file_uploaded' OR instrument_id IS NULL),
    CONSTRAINT job_trigger_source_job_id_check CHECK ((category = 'job_completed') = (source_job_id IS NOT NULL)),
    CONSTRAINT job_trigger_source_job_id_self_check CHECK (source_job_id <> job_id),
    CONSTRAINT job_trigger_next_fire_at_check CHECK (category = 'schedule' OR next_fire_at IS NULL)
);

-- What an event may concern, and what is due.
CREATE INDEX job_trigger_file_uploaded_idx ON labdata.job_trigger (organization_id) WHERE category = 'file_uploaded';
CREATE INDEX job_trigger_source_job_id_idx ON labdata.job_trigger (organization_id, source_job_id)
    WHERE source_job_id IS NOT NULL;
CREATE INDEX job_trigger_next_fire_at_idx ON labdata.job_trigger (next_fire_at) WHERE next_fire_at IS NOT NULL;
CREATE INDEX job_trigger_instrument_id_idx ON labdata.job_trigger (organization_id, instrument_id)
    WHERE instrument_id IS NOT NULL;
CREATE INDEX job_trigger_set_by_idx ON labdata.job_trigger (organization_id, set_by);
