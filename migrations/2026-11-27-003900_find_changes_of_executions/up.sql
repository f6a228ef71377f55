-- With all that statements compare: beside an index of the execution alone, PostgreSQL also read that of all changes of
-- the organization. One pair of values repeats, which the index stores once.
DROP INDEX labdata.row_change_execution_id_idx;
CREATE INDEX row_change_execution_id_idx ON labdata.row_change (execution_id, organization_id, table_name);
