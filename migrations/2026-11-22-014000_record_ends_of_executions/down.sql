CREATE OR REPLACE FUNCTION labdata.create_executions(
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

DROP FUNCTION labdata.record_ends;
