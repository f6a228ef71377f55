DROP TABLE labdata.execution_revert;
DROP TABLE labdata.row_change;
DROP TABLE labdata.write_ledger;
DROP TABLE labdata.catalog_unique;
DROP TABLE labdata.catalog_column;
DROP TABLE labdata.catalog_table;
