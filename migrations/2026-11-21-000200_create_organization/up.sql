-- A tenant.
CREATE TABLE labdata.organization (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    -- The schema that holds its tables.
    schema_name text NOT NULL,
    -- Counts changes of its table definitions.
    catalog_version bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL,
    CONSTRAINT organization_name_key UNIQUE (name),
    CONSTRAINT organization_schema_name_key UNIQUE (schema_name),
    CONSTRAINT organization_schema_name_check CHECK (schema_name = 'org_' || replace(id::text, '-', ''))
);
