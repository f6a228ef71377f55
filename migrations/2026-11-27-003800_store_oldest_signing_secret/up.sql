-- The oldest version of a webhook's secret that signs until `previous_secret_until`: of several rotations within a day, all
-- former secrets go on to sign.
ALTER TABLE labdata.webhook
    ADD COLUMN oldest_secret_version bigint NOT NULL DEFAULT 1;
UPDATE labdata.webhook SET oldest_secret_version = greatest(secret_version - 1, 1);
ALTER TABLE labdata.webhook
    ADD CONSTRAINT webhook_oldest_secret_version_check
        CHECK (oldest_secret_version BETWEEN 1 AND secret_version);
