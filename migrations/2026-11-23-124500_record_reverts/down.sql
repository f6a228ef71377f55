DROP TABLE labdata.execution_revert;
