-- A member of an organization.
CREATE TABLE labdata.app_user (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL,
    email text NOT NULL,
    -- The address without regard to case, as the program folds it: a database's idea of case depends on its locale.
    email_folded text NOT NULL,
    name text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT app_user_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES labdata.organization (id),
    CONSTRAINT app_user_email_key UNIQUE (organization_id, email_folded),
    -- What references a user names the organization too, so that it cannot be another's.
    CONSTRAINT app_user_organization_id_id_key UNIQUE (organization_id, id)
);
