-- Sessions of browsers. Each stands for an API key, whose user and scopes it has. The token is not stored.
CREATE TABLE labdata.session (
    -- SHA-256 of the token.
    token_hash bytea PRIMARY KEY,
    organization_id uuid NOT NULL,
    api_key_id uuid NOT NULL,
    created_at timestamptz NOT NULL,
    last_used_at timestamptz NOT NULL,
    CONSTRAINT session_api_key_id_fkey
        FOREIGN KEY (organization_id, api_key_id)
        REFERENCES labdata.api_key (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT session_token_hash_check CHECK (octet_length(token_hash) = 32)
);

CREATE INDEX session_api_key_id_idx ON labdata.session (organization_id, api_key_id);
CREATE INDEX session_last_used_at_idx ON labdata.session (last_used_at);

-- Links that open a session once. The token is not stored.
CREATE TABLE labdata.sign_in_link (
    -- SHA-256 of the token.
    token_hash bytea PRIMARY KEY,
    organization_id uuid NOT NULL,
    user_id uuid NOT NULL,
    expires_at timestamptz NOT NULL,
    CONSTRAINT sign_in_link_user_id_fkey
        FOREIGN KEY (organization_id, user_id) REFERENCES labdata.app_user (organization_id, id),
    CONSTRAINT sign_in_link_token_hash_check CHECK (octet_length(token_hash) = 32)
);

CREATE INDEX sign_in_link_user_id_idx ON labdata.sign_in_link (organization_id, user_id);
CREATE INDEX sign_in_link_expires_at_idx ON labdata.sign_in_link (expires_at);
