-- The table in the trash, or purged, that an event is of: another one may bear its name by now, which others may see. As
-- the ledger has it.
ALTER TABLE labdata.event_log ADD COLUMN trash_number bigint;
