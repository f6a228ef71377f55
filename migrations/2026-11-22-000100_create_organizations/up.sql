-- The platform's own tables. Each organization's tables are in separate schemas, `org_<id>`.
-- The program creates this schema before the first migration, for its record of migrations.
CREATE SCHEMA IF NOT EXISTS labdata;

-- A tenant.
CREATE TABLE labdata.organization (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    -- Schema of the organization's tables.
    schema_name text NOT NULL,
    -- Number of changes of its table definitions.
    catalog_version bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL,
    CONSTRAINT organization_name_key UNIQUE (name),
    CONSTRAINT organization_schema_name_key UNIQUE (schema_name),
    CONSTRAINT organization_schema_name_check CHECK (schema_name = 'org_' || replace(id::text, '-', ''))
);

-- A member of an organization.
CREATE TABLE labdata.app_user (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL,
    email text NOT NULL,
    -- The address, lower-cased by the program: case rules of a database depend on its locale.
    email_folded text NOT NULL,
    name text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    -- When the user was disabled; the API keys of a disabled user are refused.
    disabled_at timestamptz,
    CONSTRAINT app_user_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES labdata.organization (id),
    CONSTRAINT app_user_email_key UNIQUE (organization_id, email_folded),
    -- References name the organization too, so that they cannot cross organizations.
    CONSTRAINT app_user_organization_id_id_key UNIQUE (organization_id, id)
);

CREATE INDEX app_user_list_idx ON labdata.app_user (organization_id, created_at DESC, id DESC);

-- Secrets shared by all servers of the platform, such as the one that signs URLs.
CREATE TABLE labdata.server_secret (
    purpose text PRIMARY KEY,
    secret bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT server_secret_secret_check CHECK (octet_length(secret) = 32)
);

-- The secret of advisory locks. Other secrets are made by the servers.
INSERT INTO labdata.server_secret (purpose, secret)
VALUES ('locks', decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex'));

-- Key of the advisory lock of that name. It is keyed, so that whoever runs SQL in this database, but cannot read this
-- schema, cannot take the lock of an organization. Fails without the secret: a lock whose key is null is none.
CREATE FUNCTION labdata.lock_key(p_name text) RETURNS bigint LANGUAGE plpgsql STABLE STRICT AS $$
DECLARE
    own bytea;
BEGIN
    SELECT secret INTO STRICT own FROM labdata.server_secret WHERE purpose = 'locks';
    RETURN ('x' || encode(substr(sha256(own || convert_to(p_name, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint;
END $$;
