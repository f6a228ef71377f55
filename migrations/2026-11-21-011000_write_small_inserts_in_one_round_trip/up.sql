-- What writes a line of the ledger has created its execution in the same transaction or holds it locked, and executions
-- are never deleted, so the reference can't break. Checking it cost more than writing the line: while the table of
-- executions is young, PostgreSQL looks them up by any index that begins with the organization, and goes on so for as
-- long as the connection lasts.
ALTER TABLE labdata.write_ledger DROP CONSTRAINT write_ledger_execution_id_fkey;

-- Creates executions that are completed with the writes they are for, under jobs that should exist (a missing one is a
-- violation of NOT NULL), and tells of their ends where another job waits for them.
--
-- Both functions are planned once for any number of executions: planning for each number of them costs more than
-- creating a few. They look nothing up by reading whole tables, which is what PostgreSQL plans, for as long as a
-- connection lasts, while a table is young: also for the references that are checked in here.
CREATE FUNCTION labdata.create_executions(
    p_organization uuid, p_ids uuid[], p_jobs text[], p_users uuid[], p_times timestamptz[]
) RETURNS void LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
BEGIN
    INSERT INTO labdata.job_execution
            (id, organization_id, job_id, origin, status, started_by, created_at, started_at, completed_at)
        SELECT u.id, p_organization,
            (SELECT job.id FROM labdata.job WHERE job.organization_id = p_organization AND job.name = u.job),
            'data_write', 'completed', u.started_by, u.at, u.at, u.at
        FROM unnest(p_ids, p_jobs, p_users, p_times) AS u(id, job, started_by, at);
    PERFORM FROM labdata.job_trigger WHERE organization_id = p_organization AND source_job_id IS NOT NULL;
    IF FOUND THEN
        INSERT INTO labdata.event (organization_id, kind, job_execution_id, created_at)
            SELECT p_organization, 'job_completed', ended.id, ended.completed_at
            FROM labdata.job_execution AS ended
            WHERE ended.organization_id = p_organization AND ended.id = ANY (p_ids)
            AND ended.job_id IN (SELECT source_job_id FROM labdata.job_trigger
                WHERE organization_id = p_organization AND source_job_id IS NOT NULL);
        IF FOUND THEN
            PERFORM pg_notify('labdata_event', '');
        END IF;
    END IF;
END $$;

-- Records small inserts into one table that share a transaction, before their rows are created: an execution, a line of
-- the ledger and a number of rows for each. Fails where definitions have changed since the inserts were planned, or
-- where a lock is not to be had within 20 ms, then and for the rest of the transaction: an insert must not wait for
-- what concerns another one.
CREATE FUNCTION labdata.record_inserts(
    p_organization uuid, p_catalog_lock bigint, p_catalog_version bigint, p_table text,
    p_executions uuid[], p_jobs text[], p_users uuid[], p_times timestamptz[], p_counts bigint[]
) RETURNS void LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
BEGIN
    PERFORM set_config('lock_timeout', '20ms', true);
    PERFORM pg_advisory_xact_lock_shared(p_catalog_lock);
    -- Sees what was committed before the lock was had, as a statement of its own.
    PERFORM FROM labdata.organization WHERE id = p_organization AND catalog_version = p_catalog_version;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the catalog has changed';
    END IF;
    PERFORM labdata.create_executions(p_organization, p_executions, p_jobs, p_users, p_times);
    INSERT INTO labdata.write_ledger (organization_id, execution_id, created_at, table_name, action, row_count)
        SELECT p_organization, u.execution, u.at, p_table, 'created', u.row_count
        FROM unnest(p_executions, p_times, p_counts) AS u(execution, at, row_count);
END $$;
