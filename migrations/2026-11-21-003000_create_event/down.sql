DROP TABLE labdata.event;
