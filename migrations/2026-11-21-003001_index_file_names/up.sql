-- Listings of an instrument's files with an extension.
CREATE INDEX file_instrument_extension_list_idx
    ON labdata.file (organization_id, instrument_id, extension, uploaded_at DESC, id DESC)
    WHERE uploaded_at IS NOT NULL AND instrument_id IS NOT NULL;

-- Every three neighbouring characters of a path as a number that mixes in the organization, so that a search passes
-- over what others keep. Different ones may share a number: what an index over them finds is compared once more.
-- The cost keeps the planner from calling it for every row of a table.
CREATE FUNCTION labdata.path_grams(organization uuid, path text) RETURNS integer[]
LANGUAGE sql IMMUTABLE STRICT COST 10000 AS $$
    SELECT coalesce(array_agg(DISTINCT (hashtextextended(
            (c[i] || c[i + 1] || c[i + 2]) COLLATE "C", uuid_hash_extended(organization, 0)) & 2147483647)::integer), '{}')
    FROM string_to_array(path, NULL) c, generate_series(1, cardinality(c) - 2) i
$$;

-- Searches for a part of a path. Without a list of pending entries: each search would read all of it.
CREATE INDEX file_path_grams_idx ON labdata.file USING gin (labdata.path_grams(organization_id, path_folded))
    WITH (fastupdate = off) WHERE uploaded_at IS NOT NULL;
