DROP TABLE labdata.dataset;
