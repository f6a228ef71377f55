DROP TABLE labdata.event;
DROP TABLE labdata.job_trigger;
