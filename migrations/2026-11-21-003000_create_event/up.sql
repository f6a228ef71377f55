-- The outbox of what jobs may be triggered by. An event is stored in the transaction of what it tells, which also
-- notifies the channel `labdata_event`; whoever acts on it deletes it in the transaction of that act.
CREATE TABLE labdata.event (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organization_id uuid NOT NULL,
    kind text NOT NULL,
    -- The file that was confirmed, or the execution that ended. What is deleted triggers nothing any more.
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

-- What consumers take, the oldest first.
CREATE INDEX event_take_idx ON labdata.event (created_at, id);
-- Of one thing at most one event waits.
CREATE UNIQUE INDEX event_file_id_key ON labdata.event (organization_id, file_id) WHERE file_id IS NOT NULL;
CREATE UNIQUE INDEX event_job_execution_id_key ON labdata.event (organization_id, job_execution_id)
    WHERE job_execution_id IS NOT NULL;
