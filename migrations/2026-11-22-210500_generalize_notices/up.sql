-- The outbox of notices: ended executions and trainings whose users have not been notified. A row is stored in the
-- transaction of the end, and deleted in the transaction that delivers the notice.
ALTER TABLE labdata.failure_notice RENAME TO notice;

ALTER TABLE labdata.notice DROP CONSTRAINT failure_notice_pkey;
ALTER TABLE labdata.notice RENAME CONSTRAINT failure_notice_job_execution_id_fkey TO notice_job_execution_id_fkey;
ALTER TABLE labdata.notice
    ADD COLUMN id uuid NOT NULL DEFAULT gen_random_uuid(),
    ADD CONSTRAINT notice_pkey PRIMARY KEY (id),
    ALTER COLUMN job_execution_id DROP NOT NULL,
    ADD COLUMN model_version_id uuid,
    ADD CONSTRAINT notice_model_version_id_fkey FOREIGN KEY (organization_id, model_version_id)
        REFERENCES labdata.ml_model_version (organization_id, id) ON DELETE CASCADE,
    ADD CONSTRAINT notice_subject_check CHECK (num_nonnulls(job_execution_id, model_version_id) = 1);

-- One notice per end.
CREATE UNIQUE INDEX notice_job_execution_id_key ON labdata.notice (organization_id, job_execution_id)
    WHERE job_execution_id IS NOT NULL;
CREATE UNIQUE INDEX notice_model_version_id_key ON labdata.notice (organization_id, model_version_id)
    WHERE model_version_id IS NOT NULL;

-- The order of delivery.
DROP INDEX labdata.failure_notice_take_idx;
CREATE INDEX notice_take_idx ON labdata.notice (recorded_at, id);
