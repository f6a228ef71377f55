ALTER TABLE labdata.row_change DROP COLUMN existed_since;
ALTER TABLE labdata.deleted_version ALTER COLUMN row_id TYPE text COLLATE "default";
ALTER TABLE labdata.row_change ALTER COLUMN row_id TYPE text COLLATE "default";
