DROP TABLE labdata.job;
