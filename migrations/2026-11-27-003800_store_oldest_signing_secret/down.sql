ALTER TABLE labdata.webhook DROP COLUMN oldest_secret_version;
