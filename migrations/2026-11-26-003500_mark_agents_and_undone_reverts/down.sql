DELETE FROM labdata.execution_revert WHERE is_undone;
ALTER TABLE labdata.execution_revert DROP COLUMN undo_execution_id, DROP COLUMN is_undone;

UPDATE labdata.job_execution SET origin = 'off_platform' WHERE origin = 'agent';
ALTER TABLE labdata.job_execution
    DROP CONSTRAINT job_execution_origin_check,
    ADD CONSTRAINT job_execution_origin_check CHECK (origin IN ('off_platform', 'data_write', 'platform'));
