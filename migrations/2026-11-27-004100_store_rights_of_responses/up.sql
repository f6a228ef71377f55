-- SHA-256 of the rights with which the request was made. Null in what an earlier version stored, whose body_sha256 covers
-- them.
ALTER TABLE labdata.idempotency_key ADD COLUMN rights_sha256 bytea;
