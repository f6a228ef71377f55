ALTER TABLE labdata.app_user DROP COLUMN role;
