-- Checks that rows which were created are of a later moment than the deletions of their keys: as of a moment in between
-- they would be there and deleted. Called after their insert, which waits for a deletion that is under way.
--
-- Planned once, and without scans of whole tables, as the functions that begin the insert are.
CREATE FUNCTION labdata.require_later_than_deletions(
    p_organization uuid, p_table text, p_keys text[], p_times timestamptz[]
) RETURNS void LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
    first timestamptz := (SELECT min(at) FROM unnest(p_times) AS at);
BEGIN
    -- Hardly any deletion has a later moment than a write that begins.
    PERFORM FROM labdata.row_change c, unnest(p_keys, p_times) AS u(id, at)
        WHERE c.organization_id = p_organization AND c.table_name = p_table AND c.action = 'deleted'
        AND c.at >= first AND c.row_id = u.id COLLATE "C" AND c.at >= u.at;
    IF FOUND THEN
        RAISE EXCEPTION 'a row was deleted at a later moment' USING ERRCODE = 'serialization_failure';
    END IF;
END $$;
