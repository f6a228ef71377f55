-- Runs of scripts on the platform.
ALTER TABLE labdata.job_execution
    ADD COLUMN script_version bigint,
    -- What it is about, for the record: files may be deleted.
    ADD COLUMN trigger_file_id uuid,
    ADD COLUMN parameters jsonb,
    -- The execution whose end triggered it.
    ADD COLUMN source_execution_id uuid,
    ADD COLUMN exit_code bigint,
    -- How often a worker has claimed it, and how many of these were lost.
    ADD COLUMN attempt bigint NOT NULL DEFAULT 0,
    ADD COLUMN lost_workers bigint NOT NULL DEFAULT 0,
    DROP CONSTRAINT job_execution_origin_check,
    DROP CONSTRAINT job_execution_status_check,
    DROP CONSTRAINT job_execution_completed_at_check,
    ADD CONSTRAINT job_execution_origin_check CHECK (origin IN ('off_platform', 'data_write', 'platform')),
    ADD CONSTRAINT job_execution_status_check
        CHECK (status IN ('queued', 'running', 'completed', 'failed', 'cancelled')),
    ADD CONSTRAINT job_execution_completed_at_check
        CHECK ((status IN ('queued', 'running')) = (completed_at IS NULL)),
    ADD CONSTRAINT job_execution_source_execution_id_fkey FOREIGN KEY (organization_id, source_execution_id)
        REFERENCES labdata.job_execution (organization_id, id),
    -- What a run on the platform has, and no other execution.
    ADD CONSTRAINT job_execution_run_check CHECK (
        CASE origin
            WHEN 'platform' THEN num_nulls(script_version, parameters) = 0
            ELSE status <> 'queued' AND attempt = 0
                AND num_nonnulls(script_version, trigger_file_id, parameters, source_execution_id, exit_code) = 0
        END
    );

CREATE INDEX job_execution_source_execution_id_idx ON labdata.job_execution (organization_id, source_execution_id)
    WHERE source_execution_id IS NOT NULL;
-- What workers take, the oldest first.
CREATE INDEX job_execution_queue_idx ON labdata.job_execution (created_at, id) WHERE status = 'queued';
-- The deadlines that the sweeper minds; a run's own worker minds its.
DROP INDEX labdata.job_execution_deadline_idx;
CREATE INDEX job_execution_deadline_idx ON labdata.job_execution (deadline)
    WHERE status = 'running' AND origin <> 'platform' AND deadline IS NOT NULL;

-- Who holds a run that is running. A table of its own, because writes of the script lock its execution's row, and a
-- lease has to be renewed meanwhile.
CREATE TABLE labdata.run_lease (
    execution_id uuid PRIMARY KEY,
    organization_id uuid NOT NULL,
    attempt bigint NOT NULL,
    expires_at timestamptz NOT NULL,
    CONSTRAINT run_lease_execution_id_fkey
        FOREIGN KEY (organization_id, execution_id) REFERENCES labdata.job_execution (organization_id, id)
) WITH (fillfactor = 50);

CREATE INDEX run_lease_execution_id_idx ON labdata.run_lease (organization_id, execution_id);
