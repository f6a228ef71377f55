-- When and by whom the writes of an execution were reverted first.
CREATE TABLE labdata.execution_revert (
    organization_id uuid NOT NULL,
    execution_id uuid NOT NULL,
    reverted_at timestamptz NOT NULL,
    reverted_by uuid NOT NULL,
    -- The key that was used, if any; no reference, as keys may be purged.
    api_key_id uuid,
    PRIMARY KEY (organization_id, execution_id),
    CONSTRAINT execution_revert_execution_id_fkey
        FOREIGN KEY (organization_id, execution_id) REFERENCES labdata.job_execution (organization_id, id),
    CONSTRAINT execution_revert_reverted_by_fkey
        FOREIGN KEY (organization_id, reverted_by) REFERENCES labdata.app_user (organization_id, id)
);

CREATE INDEX execution_revert_reverted_by_idx ON labdata.execution_revert (organization_id, reverted_by);
