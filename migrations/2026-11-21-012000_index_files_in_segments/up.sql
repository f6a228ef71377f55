-- Searches of files by a part of their path (docs/adr/0009). Confirmed files lie in segments: runs of the list, of which
-- each word tells in which positions of a segment there are files that have it. What was confirmed last is in none yet.
DROP INDEX labdata.file_keys_idx;
DROP FUNCTION labdata.file_keys(uuid, uuid, text, text, timestamptz);
DROP FUNCTION labdata.file_key(uuid, text);

-- Confirmed files that are in no segment yet, with what a search compares.
CREATE TABLE labdata.file_unindexed (
    organization_id uuid NOT NULL,
    uploaded_at timestamptz NOT NULL,
    id uuid NOT NULL,
    instrument_id uuid,
    extension text,
    path_folded text NOT NULL,
    PRIMARY KEY (organization_id, uploaded_at, id),
    CONSTRAINT file_unindexed_organization_id_fkey
        FOREIGN KEY (organization_id) REFERENCES labdata.organization (id)
);

-- Files that were deleted but still have their position in a segment.
CREATE TABLE labdata.file_deleted (
    organization_id uuid NOT NULL,
    uploaded_at timestamptz NOT NULL,
    id uuid NOT NULL,
    PRIMARY KEY (organization_id, uploaded_at, id),
    CONSTRAINT file_deleted_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES labdata.organization (id)
);

-- A run of an organization's list of files, from its oldest to its newest one. Segments do not overlap. One that was
-- replaced is kept for a while, as searches that have begun still look up what they found in it.
CREATE TABLE labdata.file_segment (
    organization_id uuid NOT NULL,
    id bigint GENERATED ALWAYS AS IDENTITY,
    files integer NOT NULL,
    -- Whether it takes in no more files.
    is_full boolean NOT NULL,
    oldest_at timestamptz NOT NULL,
    oldest_id uuid NOT NULL,
    newest_at timestamptz NOT NULL,
    newest_id uuid NOT NULL,
    replaced_at timestamptz,
    PRIMARY KEY (organization_id, id),
    CONSTRAINT file_segment_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES labdata.organization (id)
);
CREATE UNIQUE INDEX file_segment_newest_key ON labdata.file_segment (organization_id, newest_at DESC, newest_id DESC)
    WHERE replaced_at IS NULL;
CREATE INDEX file_segment_replaced_at_idx ON labdata.file_segment (replaced_at) WHERE replaced_at IS NOT NULL;

-- Which files a segment has, 64 to a page: position p, counted from its oldest file, is number p % 64 of page p / 64.
CREATE TABLE labdata.file_segment_page (
    organization_id uuid NOT NULL,
    segment_id bigint NOT NULL,
    number integer NOT NULL,
    oldest_at timestamptz NOT NULL,
    oldest_id uuid NOT NULL,
    file_ids uuid[] NOT NULL,
    PRIMARY KEY (organization_id, segment_id, number),
    CONSTRAINT file_segment_page_segment_id_fkey FOREIGN KEY (organization_id, segment_id)
        REFERENCES labdata.file_segment (organization_id, id) ON DELETE CASCADE
);

-- The positions of a segment that have a word, and how many: behind an `r` as a Roaring bitmap in its portable format, or
-- behind a `b` one bit for each, whichever is shorter. Words are one, two and three neighbouring characters of the path,
-- the instrument and the extension. Such a row fits into a page as it is, and stays whole.
CREATE TABLE labdata.file_posting (
    organization_id uuid NOT NULL,
    word text COLLATE "C" NOT NULL,
    segment_id bigint NOT NULL,
    frequency integer NOT NULL,
    positions bytea NOT NULL,
    PRIMARY KEY (organization_id, word, segment_id),
    CONSTRAINT file_posting_segment_id_fkey FOREIGN KEY (organization_id, segment_id)
        REFERENCES labdata.file_segment (organization_id, id) ON DELETE CASCADE
);
ALTER TABLE labdata.file_posting SET (toast_tuple_target = 8160);
ALTER TABLE labdata.file_posting ALTER COLUMN positions SET STORAGE EXTERNAL;
CREATE INDEX file_posting_segment_id_idx ON labdata.file_posting (organization_id, segment_id);

-- In the transaction that confirms or deletes a file, whoever does it. What is confirmed does not change any more.
CREATE FUNCTION labdata.note_listed_file() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        DELETE FROM labdata.file_unindexed
            WHERE organization_id = OLD.organization_id AND uploaded_at = OLD.uploaded_at AND id = OLD.id;
        IF NOT FOUND THEN
            INSERT INTO labdata.file_deleted (organization_id, uploaded_at, id)
                VALUES (OLD.organization_id, OLD.uploaded_at, OLD.id);
        END IF;
    ELSE
        INSERT INTO labdata.file_unindexed (organization_id, uploaded_at, id, instrument_id, extension, path_folded)
            VALUES (NEW.organization_id, NEW.uploaded_at, NEW.id, NEW.instrument_id, NEW.extension, NEW.path_folded);
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER file_insert AFTER INSERT ON labdata.file
    FOR EACH ROW WHEN (NEW.uploaded_at IS NOT NULL) EXECUTE FUNCTION labdata.note_listed_file();
CREATE TRIGGER file_confirm AFTER UPDATE OF uploaded_at ON labdata.file
    FOR EACH ROW WHEN (OLD.uploaded_at IS NULL AND NEW.uploaded_at IS NOT NULL)
    EXECUTE FUNCTION labdata.note_listed_file();
CREATE TRIGGER file_delete AFTER DELETE ON labdata.file
    FOR EACH ROW WHEN (OLD.uploaded_at IS NOT NULL) EXECUTE FUNCTION labdata.note_listed_file();

INSERT INTO labdata.file_unindexed (organization_id, uploaded_at, id, instrument_id, extension, path_folded)
    SELECT organization_id, uploaded_at, id, instrument_id, extension, path_folded
    FROM labdata.file WHERE uploaded_at IS NOT NULL;
