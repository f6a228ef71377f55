DROP TABLE labdata.invitation;
