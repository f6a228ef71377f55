DROP TABLE labdata.run_log_chunk;
DROP TABLE labdata.run_log;
DROP TABLE labdata.run_lease;
DROP TABLE labdata.job_execution;
DROP TABLE labdata.job_version;
DROP TABLE labdata.job;
