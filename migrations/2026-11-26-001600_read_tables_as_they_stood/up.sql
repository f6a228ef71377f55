-- Tables are read as they stood at an earlier moment, and versions of rows keep their numbers.

-- The first moment since which a table is known as it stood. What was changed before this migration may be missing.
ALTER TABLE labdata.catalog_table ADD COLUMN history_since timestamptz NOT NULL DEFAULT now();
-- The same for core tables.
ALTER TABLE labdata.organization ADD COLUMN history_since timestamptz NOT NULL DEFAULT now();

-- Numbers of versions of rows that are no longer stored: the versions that are stored are numbered behind them. Without
-- references, as changes of rows are.
CREATE TABLE labdata.deleted_version (
    organization_id uuid NOT NULL,
    table_name text NOT NULL,
    row_id text NOT NULL,
    versions bigint NOT NULL,
    CONSTRAINT deleted_version_pkey PRIMARY KEY (organization_id, table_name, row_id),
    CONSTRAINT deleted_version_versions_check CHECK (versions > 0)
);

-- By time, for the first change of a row after a moment. Changes of a row have ascending times.
ALTER TABLE labdata.row_change DROP CONSTRAINT row_change_pkey;
ALTER TABLE labdata.row_change
    ADD CONSTRAINT row_change_pkey PRIMARY KEY (organization_id, table_name, row_id, at, id);
-- Rows that do not exist any more, and did at a moment.
CREATE INDEX row_change_deleted_idx ON labdata.row_change (organization_id, table_name, at) WHERE action = 'deleted';

-- Values of replaced series are long: lz4 takes a fifth of the time of PostgreSQL's default, where it is built in.
DO $$
BEGIN
    EXECUTE 'ALTER TABLE labdata.row_change ALTER COLUMN before SET COMPRESSION lz4';
EXCEPTION WHEN feature_not_supported OR syntax_error THEN
    NULL;
END $$;

-- Chunks of series are known from when they were written; null for those that are older than this migration. Their views
-- show the execution that wrote them.
DO $$
DECLARE
    chunk record;
BEGIN
    FOR chunk IN
        SELECT n.nspname AS schema_name, c.relname AS name
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        JOIN labdata.organization o ON n.nspname = o.schema_name || '_chunks'
        WHERE c.relkind = 'r'
        AND NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = '_written_at')
    LOOP
        EXECUTE format('ALTER TABLE %I.%I ADD COLUMN _written_at timestamptz', chunk.schema_name, chunk.name);
        EXECUTE format('ALTER TABLE %I.%I ALTER COLUMN _written_at SET DEFAULT now()', chunk.schema_name, chunk.name);
    END LOOP;
    FOR chunk IN
        SELECT n.nspname AS schema_name, c.relname AS name, pg_get_viewdef(c.oid) AS definition
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        JOIN labdata.organization o ON n.nspname = o.schema_name
        WHERE c.relkind = 'v'
        AND NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'created_by_execution_id')
    LOOP
        -- A view is replaced by one with further columns behind its own.
        EXECUTE format('CREATE OR REPLACE VIEW %I.%I AS ', chunk.schema_name, chunk.name)
            || regexp_replace(chunk.definition, E'\n\\s+FROM ', E', c._execution AS created_by_execution_id\n FROM ');
    END LOOP;
END $$;
