DROP TABLE labdata.job_execution; DROP TABLE labdata.job;
