DELETE FROM labdata.notice WHERE job_execution_id IS NULL;
DROP INDEX labdata.notice_take_idx;
DROP INDEX labdata.notice_model_version_id_key;
DROP INDEX labdata.notice_job_execution_id_key;
ALTER TABLE labdata.notice
    DROP CONSTRAINT notice_subject_check,
    DROP COLUMN model_version_id,
    ALTER COLUMN job_execution_id SET NOT NULL,
    DROP CONSTRAINT notice_pkey,
    DROP COLUMN id,
    ADD CONSTRAINT failure_notice_pkey PRIMARY KEY (organization_id, job_execution_id);
ALTER TABLE labdata.notice RENAME CONSTRAINT notice_job_execution_id_fkey TO failure_notice_job_execution_id_fkey;
ALTER TABLE labdata.notice RENAME TO failure_notice;
CREATE INDEX failure_notice_take_idx ON labdata.failure_notice (recorded_at, job_execution_id);
