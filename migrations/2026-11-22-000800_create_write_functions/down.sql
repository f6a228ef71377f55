DROP FUNCTION labdata.begin_inserts;
DROP FUNCTION labdata.create_executions;
DROP FUNCTION labdata.record_ends;
