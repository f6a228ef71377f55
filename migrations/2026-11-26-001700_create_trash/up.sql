-- Deleted files, tables and columns that can be restored until they are purged. What a table or a column held is in a
-- schema of its own, `org_<organization>_trash_<number>` (docs/adr/0043).
CREATE TABLE labdata.trash (
    id uuid NOT NULL,
    number bigint GENERATED ALWAYS AS IDENTITY,
    organization_id uuid NOT NULL,
    kind text NOT NULL,
    -- A file's path, a table's name, of a column `table.column`.
    name text NOT NULL,
    -- Of a table its id in the catalog, of a column that of its table. No reference: a dropped table has left the catalog.
    table_id bigint,
    deleted_at timestamptz NOT NULL,
    deleted_by uuid NOT NULL,
    -- The key that was used, if any; no reference, as keys may be purged.
    api_key_id uuid,
    purge_at timestamptz NOT NULL,
    size_bytes bigint NOT NULL,
    -- Of a file.
    object_key uuid,
    crc32c text,
    -- The rows of the platform's tables: {"file"}, or {"table", "columns", "unique"} of the catalog.
    content jsonb NOT NULL,
    CONSTRAINT trash_pkey PRIMARY KEY (id),
    CONSTRAINT trash_number_key UNIQUE (number),
    CONSTRAINT trash_object_key_key UNIQUE (object_key),
    CONSTRAINT trash_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES labdata.organization (id),
    CONSTRAINT trash_deleted_by_fkey
        FOREIGN KEY (organization_id, deleted_by) REFERENCES labdata.app_user (organization_id, id),
    CONSTRAINT trash_kind_check CHECK (kind IN ('file', 'table', 'column')),
    CONSTRAINT trash_object_check CHECK ((kind = 'file') = (object_key IS NOT NULL)),
    CONSTRAINT trash_table_check CHECK ((kind = 'file') = (table_id IS NULL)),
    CONSTRAINT trash_size_bytes_check CHECK (size_bytes >= 0)
);

-- The list, and the bytes that count for the quota.
CREATE INDEX trash_list_idx ON labdata.trash (organization_id, deleted_at DESC, id DESC) INCLUDE (size_bytes);
CREATE INDEX trash_deleted_by_idx ON labdata.trash (organization_id, deleted_by);
-- The columns of a table.
CREATE INDEX trash_table_id_idx ON labdata.trash (table_id) WHERE table_id IS NOT NULL;
-- For the task that purges.
CREATE INDEX trash_purge_at_idx ON labdata.trash (purge_at);
