CREATE INDEX file_posting_segment_id_idx ON labdata.file_posting (organization_id, segment_id);
ALTER TABLE labdata.file_posting
    DROP CONSTRAINT file_posting_pkey,
    ADD CONSTRAINT file_posting_pkey PRIMARY KEY (organization_id, word, segment_id);
DROP INDEX labdata.file_segment_newest_key;
ALTER TABLE labdata.file_segment
    ALTER COLUMN id DROP DEFAULT,
    ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY,
    ADD COLUMN replaced_at timestamptz;
CREATE UNIQUE INDEX file_segment_newest_key ON labdata.file_segment (organization_id, newest_at DESC, newest_id DESC)
    WHERE replaced_at IS NULL;
CREATE INDEX file_segment_replaced_at_idx ON labdata.file_segment (replaced_at) WHERE replaced_at IS NOT NULL;
