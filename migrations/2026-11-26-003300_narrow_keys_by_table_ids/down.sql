UPDATE labdata.api_key k SET tables = ARRAY(
    SELECT coalesce(t.name, i.id) FROM unnest(k.tables) AS i (id)
    -- A dropped table stays as its id, which no name is: a later table of its name is not covered.
    LEFT JOIN labdata.catalog_table t ON t.organization_id = k.organization_id AND t.id::text = i.id
)
WHERE k.tables IS NOT NULL;
