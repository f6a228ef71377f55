ALTER TABLE labdata.write_ledger DROP COLUMN trash_number;
