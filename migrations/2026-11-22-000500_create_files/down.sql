DROP TABLE labdata.file;
