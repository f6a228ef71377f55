DROP TABLE labdata.idempotency_key;
