DROP TABLE labdata.run_lease;

DELETE FROM labdata.api_key WHERE execution_id IN (SELECT id FROM labdata.job_execution WHERE origin = 'platform');
UPDATE labdata.job_execution SET source_execution_id = NULL WHERE source_execution_id IS NOT NULL;
-- What ran on the platform is kept as if it had run elsewhere.
UPDATE labdata.job_execution
SET origin = 'off_platform', script_version = NULL, trigger_file_id = NULL, parameters = NULL, exit_code = NULL,
    attempt = 0, completed_at = coalesce(completed_at, now()),
    status = CASE WHEN status IN ('completed', 'failed') THEN status ELSE 'failed' END
WHERE origin = 'platform';
UPDATE labdata.job_execution SET status = 'failed' WHERE status = 'cancelled';

DROP INDEX labdata.job_execution_deadline_idx;
DROP INDEX labdata.job_execution_queue_idx;
DROP INDEX labdata.job_execution_source_execution_id_idx;
ALTER TABLE labdata.job_execution
    DROP CONSTRAINT job_execution_run_check,
    DROP CONSTRAINT job_execution_source_execution_id_fkey,
    DROP CONSTRAINT job_execution_origin_check,
    DROP CONSTRAINT job_execution_status_check,
    DROP CONSTRAINT job_execution_completed_at_check,
    ADD CONSTRAINT job_execution_origin_check CHECK (origin IN ('off_platform', 'data_write')),
    ADD CONSTRAINT job_execution_status_check CHECK (status IN ('running', 'completed', 'failed')),
    ADD CONSTRAINT job_execution_completed_at_check CHECK ((status = 'running') = (completed_at IS NULL)),
    DROP COLUMN script_version,
    DROP COLUMN trigger_file_id,
    DROP COLUMN parameters,
    DROP COLUMN source_execution_id,
    DROP COLUMN exit_code,
    DROP COLUMN attempt,
    DROP COLUMN lost_workers;
CREATE INDEX job_execution_deadline_idx ON labdata.job_execution (deadline)
    WHERE status = 'running' AND deadline IS NOT NULL;
