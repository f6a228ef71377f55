-- Secrets that every server of the platform shares, such as the one that signs URLs.
CREATE TABLE labdata.server_secret (
    purpose text PRIMARY KEY,
    secret bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT server_secret_secret_check CHECK (octet_length(secret) = 32)
);
