-- Tables to which a key is narrowed, by their ids: a key follows its table under a new name, into the trash and back, and
-- no later table of an old name is its own. Core tables have no id and are named; no name begins with a digit.
UPDATE labdata.api_key k SET tables = ARRAY(
    SELECT coalesce(t.id, d.table_id)::text
    FROM unnest(k.tables) AS n (name)
    LEFT JOIN labdata.catalog_table t ON t.organization_id = k.organization_id AND t.name = n.name
    LEFT JOIN LATERAL (
        SELECT table_id FROM labdata.trash
        WHERE t.id IS NULL AND organization_id = k.organization_id AND kind = 'table' AND name = n.name
        ORDER BY number DESC LIMIT 1
    ) d ON true
    WHERE coalesce(t.id, d.table_id) IS NOT NULL
    UNION ALL
    SELECT n.name FROM unnest(k.tables) AS n (name)
    WHERE NOT EXISTS (
        SELECT FROM labdata.catalog_table t WHERE t.organization_id = k.organization_id AND t.name = n.name
        UNION ALL
        SELECT FROM labdata.trash d
        WHERE d.organization_id = k.organization_id AND d.kind = 'table' AND d.name = n.name
    )
)
WHERE k.tables IS NOT NULL;
