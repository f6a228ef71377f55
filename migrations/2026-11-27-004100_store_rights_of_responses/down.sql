ALTER TABLE labdata.idempotency_key DROP COLUMN rights_sha256;
