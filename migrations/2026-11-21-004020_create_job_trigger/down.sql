DROP TABLE labdata.job_trigger;
