DROP TABLE labdata.instrument;
