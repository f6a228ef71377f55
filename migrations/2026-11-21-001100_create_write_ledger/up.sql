-- What each execution did to its organization's tables: one row per table, request and kind of effect.
CREATE TABLE labdata.write_ledger (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id uuid NOT NULL,
    execution_id uuid NOT NULL,
    table_name text NOT NULL,
    action text NOT NULL,
    row_count bigint NOT NULL,
    -- Primary keys of the rows, or of the series' parents. Null for created rows: those bear their execution's id.
    ids text[],
    created_at timestamptz NOT NULL,
    reverted_at timestamptz,
    CONSTRAINT write_ledger_execution_id_fkey
        FOREIGN KEY (organization_id, execution_id) REFERENCES labdata.job_execution (organization_id, id),
    CONSTRAINT write_ledger_action_check CHECK (
        action IN ('created', 'updated', 'deleted', 'series_written', 'series_replaced', 'points_deleted')
    ),
    CONSTRAINT write_ledger_row_count_check CHECK (row_count >= 0)
);

CREATE INDEX write_ledger_execution_id_idx ON labdata.write_ledger (execution_id, organization_id);
-- Who else changed a row: asked by reverts.
CREATE INDEX write_ledger_updated_idx ON labdata.write_ledger (organization_id, table_name) WHERE action = 'updated';
