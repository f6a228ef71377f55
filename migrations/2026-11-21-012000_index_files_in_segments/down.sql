DROP TRIGGER file_insert ON labdata.file;
DROP TRIGGER file_confirm ON labdata.file;
DROP TRIGGER file_delete ON labdata.file;
DROP FUNCTION labdata.note_listed_file();
DROP TABLE labdata.file_posting, labdata.file_segment_page, labdata.file_segment, labdata.file_deleted,
    labdata.file_unindexed;
-- A word as a number that mixes in the organization, so that a search passes over what others keep. Different words may
-- share a number: what the index below finds is compared once more.
CREATE FUNCTION labdata.file_key(organization uuid, word text) RETURNS integer
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT (hashtextextended(word COLLATE "C", uuid_hash_extended(organization, 0)) & 2147483647)::integer
$$;

-- By what files are searched: every one, two and three neighbouring characters of the path, the instrument, the
-- extension, and the spans of time in which it was uploaded, from 64 seconds to four years, each eight of the one before.
-- The epoch of a time depends on no setting, whatever `extract` is declared as. The cost keeps the planner from calling
-- this for every row of a table. It names nothing of this schema (`file_key` is spelled out): the planner reads it also
-- for roles that may not look in here.
CREATE FUNCTION labdata.file_keys(
    organization uuid, instrument uuid, extension text, path text, uploaded_at timestamptz
) RETURNS integer[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 10000 AS $$
    SELECT array_remove(
        array_agg((hashtextextended((a) COLLATE "C", seed) & 2147483647)::integer)
            || array_agg((hashtextextended((a || b) COLLATE "C", seed) & 2147483647)::integer)
            || array_agg((hashtextextended((a || b || c) COLLATE "C", seed) & 2147483647)::integer)
            || (hashtextextended(('instrument ' || instrument::text) COLLATE "C", min(seed)) & 2147483647)::integer
            || (hashtextextended(('extension ' || extension) COLLATE "C", min(seed)) & 2147483647)::integer
            || ARRAY(
                SELECT (hashtextextended(concat('time ', level, ' ', second >> (6 + 3 * level)) COLLATE "C",
                    uuid_hash_extended(organization, 0)) & 2147483647)::integer
                FROM floor(extract(epoch FROM uploaded_at)::float8) epoch, CAST(epoch AS bigint) second,
                    generate_series(0, 7) level
            ),
        NULL)
    FROM uuid_hash_extended(organization, 0) seed, string_to_array(path, NULL) p, unnest(p, p[2:], p[3:]) parts (a, b, c)
$$;

-- Searches for a part of a path. Without a list of pending entries: each search would read all of it.
CREATE INDEX file_keys_idx
    ON labdata.file USING gin (labdata.file_keys(organization_id, instrument_id, extension, path_folded, uploaded_at))
    WITH (fastupdate = off) WHERE uploaded_at IS NOT NULL;
ALTER FUNCTION labdata.file_key(uuid, text) PARALLEL UNSAFE;
