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
