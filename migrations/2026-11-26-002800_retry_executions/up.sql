-- A run whose worker was lost fails, and another execution retries it. Both rows say so: lists read either without a
-- join. They are written in one transaction.
ALTER TABLE labdata.job_execution
    -- The failed execution that this one retries.
    ADD COLUMN retry_of_execution_id uuid,
    -- The execution that retries this one.
    ADD COLUMN retried_by_execution_id uuid,
    ADD CONSTRAINT job_execution_retry_of_execution_id_fkey FOREIGN KEY (organization_id, retry_of_execution_id)
        REFERENCES labdata.job_execution (organization_id, id),
    ADD CONSTRAINT job_execution_retried_by_execution_id_fkey FOREIGN KEY (organization_id, retried_by_execution_id)
        REFERENCES labdata.job_execution (organization_id, id),
    ADD CONSTRAINT job_execution_retry_check
        CHECK (origin = 'platform' OR num_nonnulls(retry_of_execution_id, retried_by_execution_id) = 0),
    ADD CONSTRAINT job_execution_retried_check CHECK (status = 'failed' OR retried_by_execution_id IS NULL);

CREATE UNIQUE INDEX job_execution_retry_of_execution_id_idx
    ON labdata.job_execution (organization_id, retry_of_execution_id) WHERE retry_of_execution_id IS NOT NULL;
CREATE UNIQUE INDEX job_execution_retried_by_execution_id_idx
    ON labdata.job_execution (organization_id, retried_by_execution_id) WHERE retried_by_execution_id IS NOT NULL;
