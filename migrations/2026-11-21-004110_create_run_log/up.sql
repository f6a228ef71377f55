-- What runs on the platform wrote: how much in all, and the pieces of it that are kept.
CREATE TABLE labdata.run_log (
    execution_id uuid PRIMARY KEY,
    organization_id uuid NOT NULL,
    length bigint NOT NULL,
    CONSTRAINT run_log_execution_id_fkey
        FOREIGN KEY (organization_id, execution_id) REFERENCES labdata.job_execution (organization_id, id)
) WITH (fillfactor = 50);

CREATE INDEX run_log_execution_id_idx ON labdata.run_log (organization_id, execution_id);

CREATE TABLE labdata.run_log_chunk (
    execution_id uuid NOT NULL,
    organization_id uuid NOT NULL,
    -- How much was written before it.
    start bigint NOT NULL,
    bytes bytea NOT NULL,
    PRIMARY KEY (organization_id, execution_id, start),
    CONSTRAINT run_log_chunk_execution_id_fkey
        FOREIGN KEY (organization_id, execution_id) REFERENCES labdata.job_execution (organization_id, id)
);
