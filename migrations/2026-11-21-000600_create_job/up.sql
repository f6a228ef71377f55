-- A script, or the name under which off-platform scripts run.
CREATE TABLE labdata.job (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL,
    name text NOT NULL,
    description text,
    archived boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL,
    CONSTRAINT job_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES labdata.organization (id),
    CONSTRAINT job_name_key UNIQUE (organization_id, name),
    CONSTRAINT job_organization_id_id_key UNIQUE (organization_id, id)
);

CREATE INDEX job_list_idx ON labdata.job (organization_id, created_at DESC, id DESC);
