-- Records the ends of executions that a trigger waits for, in the transaction that ends them, and notifies those who
-- act on events. It is the only place that records the end of an execution.
--
-- This function and the two below are planned once: planning for each number of executions costs more than creating a
-- few. They never scan whole tables: while a table is young, PostgreSQL plans such scans for as long as a connection
-- lasts, also for the references that are checked here.
CREATE FUNCTION labdata.record_ends(p_organization uuid, p_ids uuid[]) RETURNS void LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
BEGIN
    PERFORM FROM labdata.job_trigger WHERE organization_id = p_organization AND source_job_id IS NOT NULL;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    INSERT INTO labdata.event (organization_id, kind, job_execution_id, created_at)
        SELECT p_organization, 'job_completed', ended.id, ended.completed_at
        FROM labdata.job_execution AS ended
        WHERE ended.organization_id = p_organization AND ended.id = ANY (p_ids)
        AND ended.job_id IN (SELECT source_job_id FROM labdata.job_trigger
            WHERE organization_id = p_organization AND source_job_id IS NOT NULL);
    IF FOUND THEN
        PERFORM pg_notify('labdata_event', '');
    END IF;
END $$;

-- Creates executions that complete with the writes they are for, under jobs that should exist: a missing one violates
-- NOT NULL.
CREATE FUNCTION labdata.create_executions(
    p_organization uuid, p_ids uuid[], p_jobs text[], p_users uuid[], p_keys uuid[], p_times timestamptz[]
) RETURNS void LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
BEGIN
    INSERT INTO labdata.job_execution
            (id, organization_id, job_id, origin, status, started_by, api_key_id, created_at, started_at, completed_at)
        SELECT u.id, p_organization,
            (SELECT job.id FROM labdata.job WHERE job.organization_id = p_organization AND job.name = u.job),
            'data_write', 'completed', u.started_by, u.api_key, u.at, u.at, u.at
        FROM unnest(p_ids, p_jobs, p_users, p_keys, p_times) AS u(id, job, started_by, api_key, at);
    PERFORM labdata.record_ends(p_organization, p_ids);
END $$;

-- Begins small inserts into one table that share a transaction: creates an execution for each. Fails if definitions have
-- changed since the inserts were planned, or if a lock takes longer than 20 ms, here and in the rest of the transaction:
-- an insert must not wait for the locks of another one.
CREATE FUNCTION labdata.begin_inserts(
    p_organization uuid, p_catalog_lock text, p_catalog_version bigint,
    p_executions uuid[], p_jobs text[], p_users uuid[], p_keys uuid[], p_times timestamptz[]
) RETURNS void LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
BEGIN
    PERFORM set_config('lock_timeout', '20ms', true);
    PERFORM pg_advisory_xact_lock_shared(labdata.lock_key(p_catalog_lock));
    -- A separate statement sees what was committed before the lock was taken.
    PERFORM FROM labdata.organization WHERE id = p_organization AND catalog_version = p_catalog_version;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the catalog has changed' USING CONSTRAINT = 'catalog_version';
    END IF;
    PERFORM labdata.create_executions(p_organization, p_executions, p_jobs, p_users, p_keys, p_times);
END $$;
