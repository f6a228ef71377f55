DROP TABLE labdata.sign_in_link;
DROP TABLE labdata.session;
DROP TABLE labdata.idempotency_key;
DROP TABLE labdata.api_key;
