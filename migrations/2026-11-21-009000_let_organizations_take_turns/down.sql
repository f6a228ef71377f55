CREATE INDEX job_execution_queue_idx ON labdata.job_execution (created_at, id) WHERE status = 'queued';
DROP INDEX labdata.job_execution_turns_idx;
