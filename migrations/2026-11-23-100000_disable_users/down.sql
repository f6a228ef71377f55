DROP INDEX labdata.app_user_list_idx;

ALTER TABLE labdata.app_user DROP COLUMN disabled_at;
