ALTER TABLE labdata.write_ledger DROP COLUMN row_images;
