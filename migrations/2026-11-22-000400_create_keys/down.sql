DROP TABLE labdata.idempotency_key;
DROP TABLE labdata.api_key;
