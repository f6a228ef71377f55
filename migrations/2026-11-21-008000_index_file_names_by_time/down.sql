DROP INDEX labdata.file_keys_idx;
DROP FUNCTION labdata.file_keys(uuid, uuid, text, text, timestamptz);
DROP FUNCTION labdata.file_key(uuid, text);

CREATE FUNCTION labdata.path_grams(organization uuid, path text) RETURNS integer[]
LANGUAGE sql IMMUTABLE STRICT COST 10000 AS $$
    SELECT coalesce(array_agg(DISTINCT (hashtextextended(
            (c[i] || c[i + 1] || c[i + 2]) COLLATE "C", uuid_hash_extended(organization, 0)) & 2147483647)::integer), '{}')
    FROM string_to_array(path, NULL) c, generate_series(1, cardinality(c) - 2) i
$$;
CREATE INDEX file_path_grams_idx ON labdata.file USING gin (labdata.path_grams(organization_id, path_folded))
    WITH (fastupdate = off) WHERE uploaded_at IS NOT NULL;
