-- Definitions of the organizations' tables; core tables are part of the program.
CREATE TABLE labdata.catalog_table (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id uuid NOT NULL,
    name text NOT NULL,
    description text,
    semantic_category text NOT NULL,
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
    data_type text NOT NULL,
    is_primary_key boolean NOT NULL,
    is_nullable boolean NOT NULL,
    is_unique boolean NOT NULL,
    default_value jsonb,
    -- The table whose row it points at: one of the organization's or a core table, by name.
    references_table text,
    CONSTRAINT catalog_column_table_id_fkey
        FOREIGN KEY (table_id) REFERENCES labdata.catalog_table (id) ON DELETE CASCADE,
    CONSTRAINT catalog_column_name_key UNIQUE (table_id, name),
    CONSTRAINT catalog_column_data_type_check CHECK (
        data_type IN ('string', 'text', 'integer', 'float', 'boolean', 'datetime', 'date', 'uuid', 'json')
    )
);

-- Sets of columns whose values together may occur once.
CREATE TABLE labdata.catalog_unique (
    table_id bigint NOT NULL,
    position integer NOT NULL,
    columns text[] NOT NULL,
    CONSTRAINT catalog_unique_pkey PRIMARY KEY (table_id, position),
    CONSTRAINT catalog_unique_table_id_fkey
        FOREIGN KEY (table_id) REFERENCES labdata.catalog_table (id) ON DELETE CASCADE,
    CONSTRAINT catalog_unique_columns_check CHECK (cardinality(columns) > 0)
);
