DROP TABLE labdata.server_secret;
