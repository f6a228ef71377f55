-- Servers remember what they read of a segment, by its identifier, and each statement of a search tells which segments
-- stand (docs/adr/0009). So identifiers are random, never given twice whatever becomes of the database, and a segment
-- that is replaced need not be kept.
DELETE FROM labdata.file_segment WHERE replaced_at IS NOT NULL;
DROP INDEX labdata.file_segment_newest_key;
DROP INDEX labdata.file_segment_replaced_at_idx;
ALTER TABLE labdata.file_segment
    DROP COLUMN replaced_at,
    ALTER COLUMN id DROP IDENTITY,
    ALTER COLUMN id SET DEFAULT uuid_hash_extended(gen_random_uuid(), 0);
CREATE UNIQUE INDEX file_segment_newest_key ON labdata.file_segment (organization_id, newest_at DESC, newest_id DESC);

-- Words are looked up in a segment, and go with it: one index has both.
ALTER TABLE labdata.file_posting
    DROP CONSTRAINT file_posting_pkey,
    ADD CONSTRAINT file_posting_pkey PRIMARY KEY (organization_id, segment_id, word);
DROP INDEX labdata.file_posting_segment_id_idx;
