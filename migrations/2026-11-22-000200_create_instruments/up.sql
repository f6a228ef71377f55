-- An instrument that produces files.
CREATE TABLE labdata.instrument (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL,
    name text NOT NULL,
    description text,
    instrument_type text,
    created_at timestamptz NOT NULL,
    CONSTRAINT instrument_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES labdata.organization (id),
    CONSTRAINT instrument_name_key UNIQUE (organization_id, name),
    CONSTRAINT instrument_organization_id_id_key UNIQUE (organization_id, id)
);

CREATE INDEX instrument_list_idx ON labdata.instrument (organization_id, created_at DESC, id DESC);
