-- What workers take: of each organization the oldest.
CREATE INDEX job_execution_turns_idx ON labdata.job_execution (organization_id, created_at, id)
    WHERE status = 'queued';
DROP INDEX labdata.job_execution_queue_idx;
