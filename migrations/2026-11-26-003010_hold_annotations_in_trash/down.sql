DROP TABLE labdata.trashed_annotation;
ALTER TABLE labdata.trash DROP CONSTRAINT trash_organization_id_key;
