DROP TABLE labdata.api_key;
