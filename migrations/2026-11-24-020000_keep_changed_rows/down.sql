ALTER TABLE labdata.write_ledger DROP COLUMN kept;
