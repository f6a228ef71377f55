DROP INDEX labdata.row_change_execution_id_idx;
CREATE INDEX row_change_execution_id_idx ON labdata.row_change (execution_id);
