-- Lists of the executions of a status that few have, in the order of lists. Most are completed, among them those of data
-- writes, which are so from the beginning and cost nothing more.
CREATE INDEX job_execution_status_list_idx ON labdata.job_execution (organization_id, status, created_at DESC, id DESC)
    WHERE status <> 'completed';
