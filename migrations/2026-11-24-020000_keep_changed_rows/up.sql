-- Values of the first rows that a request updated or deleted: [{"id", "before", "after"}]. They are read for people
-- only, and never searched.
ALTER TABLE labdata.write_ledger ADD COLUMN row_images json;
