-- The trigger of a job.
CREATE TABLE labdata.job_trigger (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL,
    job_id uuid NOT NULL,
    category text NOT NULL,
    instrument_id uuid,
    -- As given by the user; the program interprets them.
    conditions jsonb NOT NULL,
    -- The job that the conditions name, if any.
    source_job_id uuid,
    -- The user in whose name runs start.
    set_by uuid NOT NULL,
    -- Earlier events do not fire it.
    armed_at timestamptz NOT NULL,
    -- Next tick of a schedule; advanced in the transaction that fires it.
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

-- Lookups by event, and due schedules.
CREATE INDEX job_trigger_file_uploaded_idx ON labdata.job_trigger (organization_id) WHERE category = 'file_uploaded';
CREATE INDEX job_trigger_source_job_id_idx ON labdata.job_trigger (organization_id, source_job_id)
    WHERE source_job_id IS NOT NULL;
CREATE INDEX job_trigger_next_fire_at_idx ON labdata.job_trigger (next_fire_at) WHERE next_fire_at IS NOT NULL;
CREATE INDEX job_trigger_instrument_id_idx ON labdata.job_trigger (organization_id, instrument_id)
    WHERE instrument_id IS NOT NULL;
CREATE INDEX job_trigger_set_by_idx ON labdata.job_trigger (organization_id, set_by);

-- The outbox of events that trigger jobs. An event is stored in the transaction of its cause, which also notifies the
-- channel `labdata_event`, and is deleted in the transaction that acts on it.
CREATE TABLE labdata.event (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organization_id uuid NOT NULL,
    kind text NOT NULL,
    -- The confirmed file, or the ended execution. A deleted one triggers nothing.
    file_id uuid,
    job_execution_id uuid,
    created_at timestamptz NOT NULL,
    CONSTRAINT event_file_id_fkey
        FOREIGN KEY (organization_id, file_id) REFERENCES labdata.file (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT event_job_execution_id_fkey
        FOREIGN KEY (organization_id, job_execution_id) REFERENCES labdata.job_execution (organization_id, id)
        ON DELETE CASCADE,
    CONSTRAINT event_kind_check CHECK (
        CASE kind
            WHEN 'file_uploaded' THEN file_id IS NOT NULL AND job_execution_id IS NULL
            WHEN 'job_completed' THEN job_execution_id IS NOT NULL AND file_id IS NULL
            ELSE false
        END
    )
);

-- The order of consumption.
CREATE INDEX event_take_idx ON labdata.event (created_at, id);
-- At most one pending event per file or execution.
CREATE UNIQUE INDEX event_file_id_key ON labdata.event (organization_id, file_id) WHERE file_id IS NOT NULL;
CREATE UNIQUE INDEX event_job_execution_id_key ON labdata.event (organization_id, job_execution_id)
    WHERE job_execution_id IS NOT NULL;
