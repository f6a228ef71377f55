-- Definitions of organizations' tables; the tables themselves are in a schema of each
-- organization's own.
CREATE TABLE labdata.catalog_table (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES labdata.organization (id),
    name text NOT NULL,
    description text,
    semantic_category text NOT NULL CHECK (semantic_category IN ('curated', 'raw')),
    UNIQUE (organization_id, name)
);

CREATE TABLE labdata.catalog_column (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    table_id bigint NOT NULL REFERENCES labdata.catalog_table (id) ON DELETE CASCADE,
    position integer NOT NULL,
    name text NOT NULL,
    description text,
    data_type text NOT NULL CHECK (data_type IN
        ('string', 'text', 'integer', 'float', 'boolean', 'datetime', 'date', 'uuid', 'json')),
    is_primary_key boolean NOT NULL,
    is_nullable boolean NOT NULL,
    is_unique boolean NOT NULL,
    default_value jsonb,
    references_table text,
    UNIQUE (table_id, name)
);

CREATE TABLE labdata.catalog_unique (
    table_id bigint NOT NULL REFERENCES labdata.catalog_table (id) ON DELETE CASCADE,
    position integer NOT NULL,
    columns text[] NOT NULL,
    PRIMARY KEY (table_id, position)
);
