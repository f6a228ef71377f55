DROP FUNCTION labdata.begin_inserts;
DROP FUNCTION labdata.create_executions;
ALTER TABLE labdata.job_execution DROP COLUMN trigger_id;

-- Creates executions that complete with the writes they are for, under jobs that should exist: a missing one violates
-- NOT NULL.
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
    PERFORM labdata.record_ends(p_organization, p_ids);
END $$;

-- Begins small inserts into one table that share a transaction: creates an execution for each. Fails if definitions have
-- changed since the inserts were planned, or if a lock takes longer than 20 ms, here and in the rest of the transaction:
-- an insert must not wait for the locks of another one.
CREATE FUNCTION labdata.begin_inserts(
    p_organization uuid, p_catalog_lock bigint, p_catalog_version bigint,
    p_executions uuid[], p_jobs text[], p_users uuid[], p_times timestamptz[]
) RETURNS void LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
BEGIN
    PERFORM set_config('lock_timeout', '20ms', true);
    PERFORM pg_advisory_xact_lock_shared(p_catalog_lock);
    -- A separate statement sees what was committed before the lock was taken.
    PERFORM FROM labdata.organization WHERE id = p_organization AND catalog_version = p_catalog_version;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the catalog has changed' USING CONSTRAINT = 'catalog_version';
    END IF;
    PERFORM labdata.create_executions(p_organization, p_executions, p_jobs, p_users, p_times);
END $$;
