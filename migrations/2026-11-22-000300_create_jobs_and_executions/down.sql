DROP TABLE labdata.job_execution;
DROP TABLE labdata.job_version;
DROP TABLE labdata.job;
