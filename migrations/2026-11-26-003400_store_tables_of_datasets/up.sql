-- Tables that the query of a dataset names, by their ids; core tables have none and are named. Who may not see all of them
-- does not see the dataset.
ALTER TABLE labdata.dataset ADD COLUMN tables text[] NOT NULL DEFAULT '{}';

-- By name, as words anywhere in the query: a table too many, never one too few. Tables that were renamed or purged since are
-- not found.
UPDATE labdata.dataset d SET tables = ARRAY(
    SELECT known.id FROM (
        SELECT t.id::text AS id, t.name FROM labdata.catalog_table t WHERE t.organization_id = d.organization_id
        UNION
        SELECT t.table_id::text, t.name FROM labdata.trash t
        WHERE t.organization_id = d.organization_id AND t.kind = 'table' AND t.table_id IS NOT NULL
        UNION
        SELECT core.name, core.name
        FROM unnest(ARRAY['experiment', 'carrier', 'operation', 'instrument_measurement', 'instrument_curve']) AS core (name)
    ) known
    WHERE lower(d.source_query) ~ ('\m' || known.name || '_?\M')
        -- These tables of the platform hold names of all tables.
        OR lower(d.source_query) ~ '"table"|\mdataset\M'
    ORDER BY known.id
)
WHERE d.source_query IS NOT NULL AND d.source_label IS NULL;
