ALTER TABLE labdata.job DROP COLUMN parameter_definitions;
