CREATE SCHEMA labdata;

CREATE TABLE labdata.organization (
    id uuid PRIMARY KEY,
    name text NOT NULL UNIQUE,
    created_at timestamptz NOT NULL,
    -- Counts changes of the organization's tables; a picture of another version is stale.
    catalog_version bigint NOT NULL DEFAULT 1
);

CREATE TABLE labdata.app_user (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES labdata.organization (id),
    email text NOT NULL,
    name text NOT NULL,
    UNIQUE (organization_id, id)
);
CREATE UNIQUE INDEX app_user_email_key ON labdata.app_user (organization_id, lower(email));

-- Secrets of this platform, one per purpose, made on first use.
CREATE TABLE labdata.server_secret (
    purpose text PRIMARY KEY,
    secret bytea NOT NULL CHECK (octet_length(secret) = 32)
);
