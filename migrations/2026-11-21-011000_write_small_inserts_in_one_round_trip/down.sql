DROP FUNCTION labdata.record_inserts;
DROP FUNCTION labdata.create_executions;
