-- Nonces that runs exchange for their keys, where others see what a run is submitted with. A row is deleted with the
-- run's lease.
CREATE TABLE labdata.run_nonce (
    execution_id uuid NOT NULL,
    organization_id uuid NOT NULL,
    attempt bigint NOT NULL,
    -- The user to whom the key will belong.
    user_id uuid NOT NULL,
    -- SHA-256 of the whole nonce.
    hash bytea NOT NULL,
    expires_at timestamptz NOT NULL,
    key_expires_at timestamptz,
    used_at timestamptz,
    CONSTRAINT run_nonce_pkey PRIMARY KEY (execution_id),
    CONSTRAINT run_nonce_execution_id_fkey
        FOREIGN KEY (organization_id, execution_id) REFERENCES labdata.job_execution (organization_id, id),
    CONSTRAINT run_nonce_user_id_fkey
        FOREIGN KEY (organization_id, user_id) REFERENCES labdata.app_user (organization_id, id),
    CONSTRAINT run_nonce_hash_check CHECK (octet_length(hash) = 32)
);

CREATE INDEX run_nonce_execution_id_idx ON labdata.run_nonce (organization_id, execution_id);
CREATE INDEX run_nonce_user_id_idx ON labdata.run_nonce (organization_id, user_id);
