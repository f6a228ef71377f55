-- Answers to requests that bore an Idempotency-Key, replayed to the same request for a day.
CREATE TABLE labdata.idempotency_key (
    organization_id uuid NOT NULL,
    -- Of the caller, for the record: keys may be purged.
    api_key_id uuid NOT NULL,
    -- Method and path, such as "POST /api/v1/jobs", and the header's value.
    operation text NOT NULL,
    key text NOT NULL,
    body_sha256 bytea NOT NULL,
    status smallint NOT NULL,
    content_type text NOT NULL,
    answer bytea NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT idempotency_key_pkey PRIMARY KEY (api_key_id, operation, key),
    CONSTRAINT idempotency_key_organization_id_fkey
        FOREIGN KEY (organization_id) REFERENCES labdata.organization (id),
    CONSTRAINT idempotency_key_status_check CHECK (status BETWEEN 200 AND 299),
    CONSTRAINT idempotency_key_body_sha256_check CHECK (octet_length(body_sha256) = 32)
);

CREATE INDEX idempotency_key_organization_id_idx ON labdata.idempotency_key (organization_id);
-- What the sweeper looks for.
CREATE INDEX idempotency_key_created_at_idx ON labdata.idempotency_key (created_at);
