CREATE TABLE labdata.instrument (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES labdata.organization (id),
    name text NOT NULL,
    description text,
    instrument_type text,
    created_at timestamptz NOT NULL,
    UNIQUE (organization_id, name),
    UNIQUE (organization_id, id)
);
CREATE INDEX instrument_list ON labdata.instrument (organization_id, created_at DESC, id DESC);
