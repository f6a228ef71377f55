CREATE TABLE labdata.api_key (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES labdata.organization (id),
    user_id uuid NOT NULL,
    name text NOT NULL,
    prefix text NOT NULL UNIQUE,
    hash bytea NOT NULL CHECK (octet_length(hash) = 32),
    scopes text[] NOT NULL CHECK (scopes <@ ARRAY['read', 'write', 'admin']),
    -- Set on the ephemeral key of a platform-run execution.
    execution_id uuid,
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    last_used_at timestamptz,
    revoked_at timestamptz,
    FOREIGN KEY (organization_id, user_id) REFERENCES labdata.app_user (organization_id, id)
);
CREATE INDEX api_key_list ON labdata.api_key (organization_id, created_at DESC, id DESC);
CREATE INDEX api_key_user ON labdata.api_key (organization_id, user_id);
