DROP FUNCTION labdata.record_inserts;
DROP FUNCTION labdata.create_executions;
ALTER TABLE labdata.write_ledger ADD CONSTRAINT write_ledger_execution_id_fkey
    FOREIGN KEY (organization_id, execution_id) REFERENCES labdata.job_execution (organization_id, id);
