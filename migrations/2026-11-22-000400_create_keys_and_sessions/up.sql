-- A user's key to one organization. Its text is not stored.
CREATE TABLE labdata.api_key (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL,
    user_id uuid NOT NULL,
    name text NOT NULL,
    -- The public part, which identifies the key.
    prefix text NOT NULL,
    -- SHA-256 of the whole key.
    hash bytea NOT NULL,
    scopes text[] NOT NULL,
    -- The execution for which the platform created the key.
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
    -- References to a key name the organization too, so that they cannot cross organizations.
    CONSTRAINT api_key_organization_id_id_key UNIQUE (organization_id, id),
    CONSTRAINT api_key_hash_check CHECK (octet_length(hash) = 32),
    CONSTRAINT api_key_scopes_check CHECK (scopes <@ ARRAY['read', 'write', 'admin'])
);

CREATE INDEX api_key_list_idx ON labdata.api_key (organization_id, created_at DESC, id DESC)
    WHERE execution_id IS NULL;
CREATE INDEX api_key_user_id_idx ON labdata.api_key (organization_id, user_id);
CREATE INDEX api_key_execution_id_idx ON labdata.api_key (organization_id, execution_id)
    WHERE execution_id IS NOT NULL;

-- Answers to requests with an Idempotency-Key, replayed to the same request for a day.
CREATE TABLE labdata.idempotency_key (
    organization_id uuid NOT NULL,
    -- The caller's key; no reference, as keys may be purged.
    api_key_id uuid NOT NULL,
    -- Method and path, such as "POST /api/v1/jobs", and the header's value.
    operation text NOT NULL,
    key text NOT NULL,
    body_sha256 bytea NOT NULL,
    status smallint NOT NULL,
    content_type text NOT NULL,
    response bytea NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT idempotency_key_pkey PRIMARY KEY (api_key_id, operation, key),
    CONSTRAINT idempotency_key_organization_id_fkey
        FOREIGN KEY (organization_id) REFERENCES labdata.organization (id),
    CONSTRAINT idempotency_key_status_check CHECK (status BETWEEN 200 AND 299),
    CONSTRAINT idempotency_key_body_sha256_check CHECK (octet_length(body_sha256) = 32)
);

CREATE INDEX idempotency_key_organization_id_idx ON labdata.idempotency_key (organization_id);
-- Expired responses, for the sweeper.
CREATE INDEX idempotency_key_created_at_idx ON labdata.idempotency_key (created_at);

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
