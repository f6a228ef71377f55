-- Immutable snapshots of rows. The rows are Parquet objects in the object storage.
CREATE TABLE labdata.dataset (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL,
    name text NOT NULL,
    description text,
    -- Names, types and counted values of the columns, in order.
    column_definitions jsonb NOT NULL,
    row_count bigint NOT NULL,
    -- Exactly one of these. The file may have been deleted since.
    source_query text,
    source_file_id uuid,
    object_key uuid NOT NULL,
    size_bytes bigint NOT NULL,
    created_by uuid NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT dataset_source_check CHECK ((source_query IS NULL) <> (source_file_id IS NULL)),
    CONSTRAINT dataset_organization_id_id_key UNIQUE (organization_id, id),
    CONSTRAINT dataset_created_by_fkey FOREIGN KEY (organization_id, created_by)
        REFERENCES labdata.app_user (organization_id, id)
);

CREATE INDEX dataset_list_idx ON labdata.dataset (organization_id, created_at DESC, id DESC);

-- The sweeper of uploads asks which objects are referenced.
CREATE UNIQUE INDEX dataset_object_key_idx ON labdata.dataset (object_key);

CREATE INDEX dataset_created_by_idx ON labdata.dataset (organization_id, created_by);

-- Models. What they learned stands in their versions.
CREATE TABLE labdata.ml_model (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL,
    name text NOT NULL,
    archived boolean NOT NULL DEFAULT false,
    -- Number of the newest version.
    version_number bigint NOT NULL,
    -- Number of the version that answers predictions; it is ready.
    active_version_number bigint,
    created_at timestamptz NOT NULL,
    CONSTRAINT ml_model_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES labdata.organization (id),
    CONSTRAINT ml_model_organization_id_id_key UNIQUE (organization_id, id),
    CONSTRAINT ml_model_active_version_number_check CHECK (active_version_number <= version_number)
);

CREATE UNIQUE INDEX ml_model_name_key ON labdata.ml_model (organization_id, name) WHERE NOT archived;
CREATE INDEX ml_model_list_idx ON labdata.ml_model (organization_id, created_at DESC, id DESC) WHERE NOT archived;

-- One version of a model, the result of one training.
CREATE TABLE labdata.ml_model_version (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL,
    model_id uuid NOT NULL,
    -- Counts from 1 within the model.
    version_number bigint NOT NULL,
    description text,
    dataset_id uuid NOT NULL,
    task_type text NOT NULL,
    problem_type text NOT NULL,
    quality_preset text NOT NULL,
    target_column text NOT NULL,
    feature_columns text[] NOT NULL,
    image_columns text[] NOT NULL,
    status text NOT NULL,
    error_message text,
    requested_by uuid NOT NULL,
    created_at timestamptz NOT NULL,
    started_at timestamptz,
    completed_at timestamptz,
    -- Progress of the last training, as the program writes it.
    progress jsonb,
    -- Metrics, and everything that the trainer reported, of a ready version.
    metrics jsonb,
    result jsonb,
    artifact_key uuid,
    artifact_sha256 bytea,
    artifact_size bigint,
    CONSTRAINT ml_model_version_organization_id_id_key UNIQUE (organization_id, id),
    CONSTRAINT ml_model_version_version_number_key UNIQUE (organization_id, model_id, version_number),
    CONSTRAINT ml_model_version_model_id_fkey
        FOREIGN KEY (organization_id, model_id) REFERENCES labdata.ml_model (organization_id, id),
    CONSTRAINT ml_model_version_dataset_id_fkey
        FOREIGN KEY (organization_id, dataset_id) REFERENCES labdata.dataset (organization_id, id),
    CONSTRAINT ml_model_version_requested_by_fkey
        FOREIGN KEY (organization_id, requested_by) REFERENCES labdata.app_user (organization_id, id),
    CONSTRAINT ml_model_version_version_number_check CHECK (version_number >= 1),
    CONSTRAINT ml_model_version_status_check
        CHECK (status IN ('pending', 'training', 'ready', 'failed', 'cancelled')),
    CONSTRAINT ml_model_version_completed_at_check
        CHECK ((status IN ('pending', 'training')) = (completed_at IS NULL)),
    CONSTRAINT ml_model_version_error_message_check CHECK ((status = 'failed') = (error_message IS NOT NULL)),
    CONSTRAINT ml_model_version_ready_check CHECK (
        num_nonnulls(metrics, result, artifact_key, artifact_sha256, artifact_size)
            = CASE status WHEN 'ready' THEN 5 ELSE 0 END
    )
) WITH (fillfactor = 70);

CREATE INDEX ml_model_version_list_idx
    ON labdata.ml_model_version (organization_id, model_id, created_at DESC, id DESC);
CREATE INDEX ml_model_version_dataset_id_idx ON labdata.ml_model_version (organization_id, dataset_id);
CREATE INDEX ml_model_version_requested_by_idx ON labdata.ml_model_version (organization_id, requested_by);
-- The sweeper of uploads asks which objects are referenced.
CREATE UNIQUE INDEX ml_model_version_artifact_key_idx ON labdata.ml_model_version (artifact_key)
    WHERE artifact_key IS NOT NULL;

-- State of the training backends, as workers of all organizations record it.
CREATE TABLE labdata.training_backend (
    worker_id uuid PRIMARY KEY,
    checked_at timestamptz NOT NULL,
    -- What it lacks; null if it can take work.
    missing text
);
