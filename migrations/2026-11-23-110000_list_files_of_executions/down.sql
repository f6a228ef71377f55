CREATE INDEX file_job_execution_id_idx ON labdata.file (organization_id, job_execution_id)
    WHERE job_execution_id IS NOT NULL;

DROP INDEX labdata.file_job_execution_list_idx;
