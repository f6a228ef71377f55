DROP TABLE labdata.write_ledger;
