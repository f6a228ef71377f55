-- Definitions of the organizations' tables. Core tables are part of the program.
CREATE TABLE labdata.catalog_table (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id uuid NOT NULL,
    name text NOT NULL,
    description text,
    semantic_category text NOT NULL,
    -- False if earlier versions of its rows or series are not stored.
    history boolean NOT NULL DEFAULT true,
    CONSTRAINT catalog_table_organization_id_fkey
        FOREIGN KEY (organization_id) REFERENCES labdata.organization (id),
    CONSTRAINT catalog_table_name_key UNIQUE (organization_id, name),
    CONSTRAINT catalog_table_semantic_category_check CHECK (semantic_category IN ('curated', 'raw'))
);

CREATE TABLE labdata.catalog_column (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    table_id bigint NOT NULL,
    position integer NOT NULL,
    name text NOT NULL,
    description text,
    label text,
    -- A UCUM code.
    unit text,
    data_type text NOT NULL,
    is_primary_key boolean NOT NULL,
    is_nullable boolean NOT NULL,
    is_unique boolean NOT NULL,
    default_value jsonb,
    -- Name of the referenced table: one of the organization's or a core table.
    references_table text,
    CONSTRAINT catalog_column_table_id_fkey
        FOREIGN KEY (table_id) REFERENCES labdata.catalog_table (id) ON DELETE CASCADE,
    CONSTRAINT catalog_column_name_key UNIQUE (table_id, name),
    CONSTRAINT catalog_column_data_type_check CHECK (
        data_type IN ('string', 'text', 'integer', 'float', 'boolean', 'datetime', 'date', 'uuid', 'json')
    )
);

-- Sets of columns that are unique together.
CREATE TABLE labdata.catalog_unique (
    table_id bigint NOT NULL,
    position integer NOT NULL,
    columns text[] NOT NULL,
    CONSTRAINT catalog_unique_pkey PRIMARY KEY (table_id, position),
    CONSTRAINT catalog_unique_table_id_fkey
        FOREIGN KEY (table_id) REFERENCES labdata.catalog_table (id) ON DELETE CASCADE,
    CONSTRAINT catalog_unique_columns_check CHECK (cardinality(columns) > 0)
);

-- Effects of executions on their organization's tables: one row per table, request and kind of effect.
--
-- The execution is not a foreign key. The writer of a row has created the execution in the same transaction or has
-- locked it, and executions are never deleted. The check cost more than the write: while the table of executions is
-- young, PostgreSQL looks them up by any index that starts with the organization, for as long as the connection lasts.
CREATE TABLE labdata.write_ledger (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id uuid NOT NULL,
    execution_id uuid NOT NULL,
    table_name text NOT NULL,
    action text NOT NULL,
    row_count bigint NOT NULL,
    -- Primary keys of the rows, or of the parents of series. Null for created rows: they have their execution's id.
    ids text[],
    created_at timestamptz NOT NULL,
    reverted_at timestamptz,
    -- Values of the first rows that a request updated or deleted: [{"id", "before", "after"}]. They are read for people
    -- only, and never searched.
    row_images json,
    CONSTRAINT write_ledger_action_check CHECK (
        action IN ('created', 'updated', 'deleted', 'series_written', 'series_replaced', 'points_deleted')
    ),
    CONSTRAINT write_ledger_row_count_check CHECK (row_count >= 0)
);

CREATE INDEX write_ledger_execution_id_idx ON labdata.write_ledger (execution_id, organization_id);
-- Later changes of a row, for reverts.
CREATE INDEX write_ledger_updated_idx ON labdata.write_ledger (organization_id, table_name) WHERE action = 'updated';

-- Their bytes count as what an organization stores.
CREATE INDEX write_ledger_row_images_idx ON labdata.write_ledger (organization_id) WHERE row_images IS NOT NULL;
-- Changes of rows, and of chunks of series, with the values before them. Creations are not among them: rows carry their
-- execution and time. Without references, as the ledger is.
CREATE TABLE labdata.row_change (
    id bigint GENERATED ALWAYS AS IDENTITY,
    organization_id uuid NOT NULL,
    table_name text NOT NULL,
    -- Primary key of the row, or of the chunk.
    row_id text NOT NULL,
    action text NOT NULL,
    -- Null for a revert that restores nothing.
    execution_id uuid,
    at timestamptz NOT NULL,
    -- The row by its columns' names in SQL; null if it did not exist. As text, which holds every number exactly and costs
    -- less to write than jsonb.
    before json,
    -- Of a series that was replaced: the reference to its parent.
    owner_column text,
    -- True for changes of a revert, which undo others.
    is_undo boolean NOT NULL DEFAULT false,
    -- The revert that undid the change last, and whether that holds: a revert can be reverted in turn.
    undone_by uuid,
    is_undone boolean NOT NULL DEFAULT false,
    CONSTRAINT row_change_pkey PRIMARY KEY (organization_id, table_name, row_id, id),
    CONSTRAINT row_change_action_check CHECK (action IN ('updated', 'deleted', 'restored'))
);

CREATE INDEX row_change_execution_id_idx ON labdata.row_change (execution_id);
-- For retention: changes are stored about in their order.
CREATE INDEX row_change_at_idx ON labdata.row_change USING brin (at);
CREATE INDEX row_change_undone_by_idx ON labdata.row_change (undone_by) WHERE undone_by IS NOT NULL;

-- When and by whom the writes of an execution were reverted first.
CREATE TABLE labdata.execution_revert (
    organization_id uuid NOT NULL,
    execution_id uuid NOT NULL,
    reverted_at timestamptz NOT NULL,
    reverted_by uuid NOT NULL,
    -- The key that was used, if any; no reference, as keys may be purged.
    api_key_id uuid,
    PRIMARY KEY (organization_id, execution_id),
    CONSTRAINT execution_revert_execution_id_fkey
        FOREIGN KEY (organization_id, execution_id) REFERENCES labdata.job_execution (organization_id, id),
    CONSTRAINT execution_revert_reverted_by_fkey
        FOREIGN KEY (organization_id, reverted_by) REFERENCES labdata.app_user (organization_id, id)
);

CREATE INDEX execution_revert_reverted_by_idx ON labdata.execution_revert (organization_id, reverted_by);
