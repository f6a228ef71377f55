-- Lists of the files of one execution, in the order of lists.
CREATE INDEX file_job_execution_list_idx ON labdata.file (organization_id, job_execution_id, uploaded_at DESC, id DESC)
    WHERE job_execution_id IS NOT NULL;

DROP INDEX labdata.file_job_execution_id_idx;
