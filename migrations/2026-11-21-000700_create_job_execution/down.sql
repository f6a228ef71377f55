DROP TABLE labdata.job_execution;
