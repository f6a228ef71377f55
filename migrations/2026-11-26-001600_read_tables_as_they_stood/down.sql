-- Columns of views and chunks stay: earlier servers leave them out.
DROP INDEX labdata.row_change_deleted_idx;
ALTER TABLE labdata.row_change DROP CONSTRAINT row_change_pkey;
ALTER TABLE labdata.row_change
    ADD CONSTRAINT row_change_pkey PRIMARY KEY (organization_id, table_name, row_id, id);
DROP TABLE labdata.deleted_version;
ALTER TABLE labdata.organization DROP COLUMN history_since;
ALTER TABLE labdata.catalog_table DROP COLUMN history_since;
