-- Executions that runs of the agent and assistants open: they end with the run or the session, not by a request. Those that
-- were opened before stay executions of scripts.
ALTER TABLE labdata.job_execution
    DROP CONSTRAINT job_execution_origin_check,
    ADD CONSTRAINT job_execution_origin_check
        CHECK (origin IN ('off_platform', 'data_write', 'agent', 'platform'));

-- The execution of a revert's own changes, and whether all of these are undone: the execution is not reverted then. Null
-- where no revert of one execution undoes the revert.
ALTER TABLE labdata.execution_revert
    ADD COLUMN undo_execution_id uuid,
    ADD COLUMN is_undone boolean NOT NULL DEFAULT false,
    ADD CONSTRAINT execution_revert_undo_execution_id_fkey
        FOREIGN KEY (organization_id, undo_execution_id) REFERENCES labdata.job_execution (organization_id, id);

CREATE INDEX execution_revert_undo_execution_id_idx
    ON labdata.execution_revert (organization_id, undo_execution_id) WHERE undo_execution_id IS NOT NULL;
