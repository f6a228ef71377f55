-- A key to one organization, of one user. Its text is known to its holder only.
CREATE TABLE labdata.api_key (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL,
    user_id uuid NOT NULL,
    name text NOT NULL,
    -- The public part, by which a key is found.
    prefix text NOT NULL,
    -- SHA-256 of the whole key.
    hash bytea NOT NULL,
    scopes text[] NOT NULL,
    -- The execution for which the platform made it.
    execution_id uuid,
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    last_used_at timestamptz,
    revoked_at timestamptz,
    CONSTRAINT api_key_user_id_fkey
        FOREIGN KEY (organization_id, user_id) REFERENCES labdata.app_user (organization_id, id),
    CONSTRAINT api_key_execution_id_fkey
        FOREIGN KEY (organization_id, execution_id) REFERENCES labdata.job_execution (organization_id, id),
    CONSTRAINT api_key_prefix_key UNIQUE (prefix),
    CONSTRAINT api_key_hash_check CHECK (octet_length(hash) = 32),
    CONSTRAINT api_key_scopes_check CHECK (scopes <@ ARRAY['read', 'write', 'admin'])
);

CREATE INDEX api_key_list_idx ON labdata.api_key (organization_id, created_at DESC, id DESC)
    WHERE execution_id IS NULL;
CREATE INDEX api_key_user_id_idx ON labdata.api_key (organization_id, user_id);
CREATE INDEX api_key_execution_id_idx ON labdata.api_key (organization_id, execution_id)
    WHERE execution_id IS NOT NULL;
