ALTER TABLE labdata.job_execution
    DROP COLUMN retry_of_execution_id,
    DROP COLUMN retried_by_execution_id;
