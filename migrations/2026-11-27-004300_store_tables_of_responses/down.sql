ALTER TABLE labdata.idempotency_key DROP COLUMN tables;
