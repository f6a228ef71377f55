-- The queue: runs and trainings that wait or run. A row is stored with the record of its work, and deleted with its
-- end. A transaction that locks several locks the model before the work, and the work before its record.
CREATE TABLE labdata.work (
    -- Id of the record.
    id uuid GENERATED ALWAYS AS (coalesce(execution_id, model_version_id)) STORED,
    organization_id uuid NOT NULL,
    kind text NOT NULL GENERATED ALWAYS AS (CASE WHEN execution_id IS NULL THEN 'training' ELSE 'run' END) STORED,
    execution_id uuid,
    model_version_id uuid,
    -- Stands beside the lease, so that indexes need not change with each renewal.
    state text NOT NULL DEFAULT 'queued',
    queued_at timestamptz NOT NULL,
    -- Number of claims by workers, and how many of those workers were lost.
    attempt bigint NOT NULL DEFAULT 0,
    lost_workers bigint NOT NULL DEFAULT 0,
    -- End of the worker's lease, by the clock of the database.
    lease_expires_at timestamptz,
    CONSTRAINT work_pkey PRIMARY KEY (id),
    CONSTRAINT work_execution_id_fkey
        FOREIGN KEY (organization_id, execution_id) REFERENCES labdata.job_execution (organization_id, id),
    CONSTRAINT work_model_version_id_fkey FOREIGN KEY (organization_id, model_version_id)
        REFERENCES labdata.ml_model_version (organization_id, id),
    CONSTRAINT work_record_check CHECK (num_nonnulls(execution_id, model_version_id) = 1),
    CONSTRAINT work_state_check CHECK (state IN ('queued', 'running')),
    CONSTRAINT work_lease_expires_at_check CHECK ((state = 'running') = (lease_expires_at IS NOT NULL))
) WITH (fillfactor = 50);

CREATE INDEX work_execution_id_idx ON labdata.work (organization_id, execution_id) WHERE execution_id IS NOT NULL;
CREATE INDEX work_model_version_id_idx ON labdata.work (organization_id, model_version_id)
    WHERE model_version_id IS NOT NULL;
-- Workers take the oldest work of an organization.
CREATE INDEX work_turns_idx ON labdata.work (kind, organization_id, queued_at, id) WHERE state = 'queued';
CREATE INDEX work_running_idx ON labdata.work (kind, organization_id) WHERE state = 'running';

-- Logs of work: the length written, and the stored chunks. They outlive the work.
CREATE TABLE labdata.work_log (
    work_id uuid NOT NULL,
    organization_id uuid NOT NULL,
    -- Number of the last claim, which alone may append.
    attempt bigint NOT NULL,
    length bigint NOT NULL DEFAULT 0,
    -- When its chunks were deleted for their age.
    deleted_at timestamptz,
    CONSTRAINT work_log_pkey PRIMARY KEY (organization_id, work_id),
    CONSTRAINT work_log_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES labdata.organization (id)
) WITH (fillfactor = 50);

CREATE TABLE labdata.work_log_chunk (
    work_id uuid NOT NULL,
    organization_id uuid NOT NULL,
    -- Bytes written before this chunk.
    start bigint NOT NULL,
    bytes bytea NOT NULL,
    CONSTRAINT work_log_chunk_pkey PRIMARY KEY (organization_id, work_id, start),
    CONSTRAINT work_log_chunk_work_id_fkey
        FOREIGN KEY (organization_id, work_id) REFERENCES labdata.work_log (organization_id, work_id)
);

-- Nonces that runs exchange for their keys, where others see what a run is submitted with. A row is deleted with the
-- run's lease.
CREATE TABLE labdata.run_nonce (
    execution_id uuid NOT NULL,
    organization_id uuid NOT NULL,
    attempt bigint NOT NULL,
    -- The user to whom the key will belong.
    user_id uuid NOT NULL,
    scopes text[] NOT NULL,
    -- SHA-256 of the whole nonce.
    hash bytea NOT NULL,
    expires_at timestamptz NOT NULL,
    key_expires_at timestamptz,
    used_at timestamptz,
    CONSTRAINT run_nonce_pkey PRIMARY KEY (execution_id),
    CONSTRAINT run_nonce_execution_id_fkey
        FOREIGN KEY (organization_id, execution_id) REFERENCES labdata.job_execution (organization_id, id),
    CONSTRAINT run_nonce_user_id_fkey
        FOREIGN KEY (organization_id, user_id) REFERENCES labdata.app_user (organization_id, id),
    CONSTRAINT run_nonce_hash_check CHECK (octet_length(hash) = 32),
    CONSTRAINT run_nonce_scopes_check CHECK (scopes <@ ARRAY['read', 'write'])
);

CREATE INDEX run_nonce_execution_id_idx ON labdata.run_nonce (organization_id, execution_id);
CREATE INDEX run_nonce_user_id_idx ON labdata.run_nonce (organization_id, user_id);

-- What belongs to one attempt at a training. A row is deleted with the training's lease.
CREATE TABLE labdata.training_attempt (
    model_version_id uuid NOT NULL,
    organization_id uuid NOT NULL,
    -- Hash of the token with which the training reports.
    token_hash bytea NOT NULL,
    -- The object that the training may upload.
    artifact_key uuid NOT NULL,
    -- The result and the error that it has reported.
    result jsonb,
    error jsonb,
    CONSTRAINT training_attempt_pkey PRIMARY KEY (model_version_id),
    CONSTRAINT training_attempt_model_version_id_fkey FOREIGN KEY (organization_id, model_version_id)
        REFERENCES labdata.ml_model_version (organization_id, id),
    CONSTRAINT training_attempt_token_hash_check CHECK (octet_length(token_hash) = 32)
) WITH (fillfactor = 50);

CREATE INDEX training_attempt_model_version_id_idx
    ON labdata.training_attempt (organization_id, model_version_id);
CREATE UNIQUE INDEX training_attempt_artifact_key_idx ON labdata.training_attempt (artifact_key);
