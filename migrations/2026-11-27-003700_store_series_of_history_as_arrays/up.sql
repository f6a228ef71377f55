-- Arrays of numbers in replaced series are stored as they are: as JSON they took nearly as long as the write itself.

-- The values of a column in a chunk. One attribute, that of the column's type, is not null; none where the column had no
-- values.
CREATE TYPE labdata.named_array AS (
    name text,
    integers bigint[],
    floats double precision[],
    booleans boolean[],
    datetimes timestamptz[],
    dates date[],
    uuids uuid[]
);

-- Arrays of a chunk, whose other columns are in `before`. Null in changes of rows, and in those that an earlier version
-- recorded or whose table was defined differently since: these have all columns in `before`.
ALTER TABLE labdata.row_change ADD COLUMN arrays labdata.named_array[];
-- As in the chunks: measured values hardly compress.
ALTER TABLE labdata.row_change ALTER COLUMN arrays SET STORAGE EXTERNAL;

-- A recorded chunk with its arrays as JSON. Changes of definitions, which rewrite JSON, merge them first.
CREATE FUNCTION labdata.with_arrays(before json, arrays labdata.named_array[]) RETURNS json
LANGUAGE sql STABLE AS $$
    SELECT json_object_agg(v.name, v.value) FROM (
        SELECT j.key AS name, j.value FROM json_each(before) j
        UNION ALL
        SELECT a.name, coalesce(to_json(a.integers), to_json(a.floats), to_json(a.booleans), to_json(a.datetimes),
            to_json(a.dates), to_json(a.uuids))
        FROM unnest(arrays) a
    ) v
$$;
