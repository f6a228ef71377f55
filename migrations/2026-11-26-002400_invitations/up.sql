-- Links that make a user of a colleague, once.
CREATE TABLE labdata.invitation (
    id uuid NOT NULL,
    organization_id uuid NOT NULL,
    email text NOT NULL,
    role text NOT NULL,
    -- Groups that the user joins, by their ids; those that are deleted by then are left out.
    groups uuid[] NOT NULL,
    -- SHA-256 of the link's token.
    token_hash bytea NOT NULL,
    created_by uuid NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    CONSTRAINT invitation_pkey PRIMARY KEY (id),
    CONSTRAINT invitation_token_hash_key UNIQUE (token_hash),
    CONSTRAINT invitation_role_check CHECK (role IN ('viewer', 'member', 'admin')),
    CONSTRAINT invitation_token_hash_check CHECK (octet_length(token_hash) = 32),
    CONSTRAINT invitation_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES labdata.organization (id),
    CONSTRAINT invitation_created_by_fkey
        FOREIGN KEY (organization_id, created_by) REFERENCES labdata.app_user (organization_id, id)
);

CREATE INDEX invitation_created_by_idx ON labdata.invitation (organization_id, created_by);
CREATE INDEX invitation_expires_at_idx ON labdata.invitation (expires_at);
