DROP TABLE labdata.organization;
