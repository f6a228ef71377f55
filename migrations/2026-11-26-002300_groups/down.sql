ALTER TABLE labdata.api_key DROP COLUMN tables;
DROP FUNCTION labdata.access_groups(bigint, text);
DROP FUNCTION labdata.group_names(uuid, uuid);
DROP TABLE labdata.table_access;
DROP TABLE labdata.group_member;
DROP TABLE labdata.user_group;
