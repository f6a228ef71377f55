ALTER TABLE labdata.event_log DROP COLUMN trash_number;
