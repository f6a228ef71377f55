DROP INDEX labdata.job_execution_file_list_idx;
