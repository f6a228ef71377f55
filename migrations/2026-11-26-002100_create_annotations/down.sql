ALTER TABLE labdata.dataset DROP COLUMN source_label;
DROP TABLE labdata.dataset_mask;
DROP TABLE labdata.annotation;
