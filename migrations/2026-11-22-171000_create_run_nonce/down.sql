DROP TABLE labdata.run_nonce;
