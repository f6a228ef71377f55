-- Addresses of the console under a name, for everyone of an organization.
CREATE TABLE labdata.saved_view (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL,
    name text NOT NULL,
    address text NOT NULL,
    is_pinned boolean NOT NULL,
    created_by uuid NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT saved_view_name_key UNIQUE (organization_id, name),
    CONSTRAINT saved_view_created_by_fkey
        FOREIGN KEY (organization_id, created_by) REFERENCES labdata.app_user (organization_id, id)
);

CREATE INDEX saved_view_created_by_idx ON labdata.saved_view (organization_id, created_by);
