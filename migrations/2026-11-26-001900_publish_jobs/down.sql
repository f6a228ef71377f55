ALTER TABLE labdata.job
    DROP CONSTRAINT job_published_version_check,
    DROP CONSTRAINT job_publish_status_check,
    DROP COLUMN published_version,
    DROP COLUMN publish_status;
