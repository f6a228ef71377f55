-- The runs of a file, in the order of lists. Data writes and most scripts have none and cost nothing more.
CREATE INDEX job_execution_file_list_idx
    ON labdata.job_execution (organization_id, trigger_file_id, created_at DESC, id DESC)
    WHERE trigger_file_id IS NOT NULL;
