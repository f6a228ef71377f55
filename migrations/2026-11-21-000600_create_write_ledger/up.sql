-- What each execution did: one line per table, kind of change and request. Created rows carry
-- their execution themselves, so their line only counts.
CREATE TABLE labdata.write_ledger (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES labdata.organization (id),
    execution_id uuid NOT NULL,
    table_name text NOT NULL,
    action text NOT NULL CHECK (action IN
        ('created', 'updated', 'deleted', 'series_written', 'series_replaced', 'points_deleted')),
    row_count bigint NOT NULL,
    ids text[],
    created_at timestamptz NOT NULL,
    reverted_at timestamptz,
    FOREIGN KEY (organization_id, execution_id) REFERENCES labdata.job_execution (organization_id, id)
);
CREATE INDEX write_ledger_execution ON labdata.write_ledger (organization_id, execution_id);
CREATE INDEX write_ledger_updated ON labdata.write_ledger (organization_id, table_name) WHERE action = 'updated';
