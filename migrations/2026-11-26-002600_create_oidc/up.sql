-- Users who sign in with an identity provider, and their accounts there (docs/adr/0049). A user keeps the account of
-- the first sign-in: an e-mail address that the provider gives to somebody else does not give them the user.
CREATE TABLE labdata.oidc_account (
    organization_id uuid NOT NULL,
    user_id uuid NOT NULL,
    issuer text NOT NULL,
    subject text NOT NULL,
    CONSTRAINT oidc_account_pkey PRIMARY KEY (organization_id, user_id),
    CONSTRAINT oidc_account_user_id_fkey
        FOREIGN KEY (organization_id, user_id) REFERENCES labdata.app_user (organization_id, id),
    CONSTRAINT oidc_account_subject_key UNIQUE (organization_id, issuer, subject)
);

-- Refresh tokens of sessions that the provider began. It is asked again when one is due. A session that ends in any
-- way takes its token along.
CREATE TABLE labdata.oidc_session (
    token_hash bytea PRIMARY KEY,
    subject text NOT NULL,
    -- Encrypted by the program.
    refresh_token bytea NOT NULL,
    check_at timestamptz NOT NULL,
    CONSTRAINT oidc_session_token_hash_fkey
        FOREIGN KEY (token_hash) REFERENCES labdata.session (token_hash) ON DELETE CASCADE
);

CREATE INDEX oidc_session_check_at_idx ON labdata.oidc_session (check_at);

-- Sign-ins that were used, by the hash of their secret, until they end.
CREATE TABLE labdata.oidc_used_attempt (
    attempt_hash bytea PRIMARY KEY,
    ends_at timestamptz NOT NULL,
    CONSTRAINT oidc_used_attempt_hash_check CHECK (octet_length(attempt_hash) = 32)
);

CREATE INDEX oidc_used_attempt_ends_at_idx ON labdata.oidc_used_attempt (ends_at);
