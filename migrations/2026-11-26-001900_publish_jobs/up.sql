-- Publishing: the status of a job's current script, and the version that an admin has approved.
ALTER TABLE labdata.job
    ADD COLUMN publish_status text NOT NULL DEFAULT 'draft',
    -- Version that an admin published last; a later change of the script leaves it.
    ADD COLUMN published_version bigint,
    ADD CONSTRAINT job_publish_status_check CHECK (publish_status IN ('draft', 'in_review', 'published')),
    -- A server of an older release changes the script without the status, so that it may name a version before
    -- the current one.
    ADD CONSTRAINT job_published_version_check
        CHECK ((publish_status <> 'published' OR published_version IS NOT NULL)
            AND (published_version IS NULL OR published_version BETWEEN 1 AND version_number));
