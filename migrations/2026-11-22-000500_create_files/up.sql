-- A file; its bytes are in the object storage under `object_key`.
CREATE TABLE labdata.file (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL,
    instrument_id uuid,
    job_execution_id uuid,
    source_type text NOT NULL,
    status text NOT NULL,
    -- The name or path as its uploader gave it, and columns that the program derives from it: its last part; the
    -- lower-cased path, for searches; the first 32 characters of the lower-cased extension; the SHA-256 of the path,
    -- for an index, which cannot hold long paths.
    original_path text NOT NULL,
    file_name text NOT NULL,
    path_folded text NOT NULL,
    extension text,
    path_hash bytea NOT NULL,
    content_type text NOT NULL,
    object_key uuid NOT NULL,
    -- Expiry of the upload URL; null once the file is confirmed.
    upload_expires_at timestamptz,
    -- Size and CRC-32C (base64 of its 4 big-endian bytes), known once the platform has received the bytes or the file
    -- is confirmed; time of confirmation.
    size_bytes bigint,
    crc32c text,
    uploaded_at timestamptz,
    -- Creation time of the source file, if known.
    file_created_at timestamptz,
    created_at timestamptz NOT NULL,
    CONSTRAINT file_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES labdata.organization (id),
    CONSTRAINT file_instrument_id_fkey
        FOREIGN KEY (organization_id, instrument_id) REFERENCES labdata.instrument (organization_id, id),
    CONSTRAINT file_job_execution_id_fkey
        FOREIGN KEY (organization_id, job_execution_id) REFERENCES labdata.job_execution (organization_id, id),
    CONSTRAINT file_organization_id_id_key UNIQUE (organization_id, id),
    CONSTRAINT file_object_key_key UNIQUE (object_key),
    CONSTRAINT file_source_type_check CHECK (source_type IN ('manual_upload', 'job_artifact', 'instrument_sync')),
    CONSTRAINT file_status_check CHECK (status IN ('awaiting_bytes', 'confirmed')),
    CONSTRAINT file_attribution_check CHECK (instrument_id IS NOT NULL OR job_execution_id IS NOT NULL),
    CONSTRAINT file_path_hash_check CHECK (octet_length(path_hash) = 32),
    CONSTRAINT file_awaiting_check CHECK ((status = 'awaiting_bytes') = (upload_expires_at IS NOT NULL)),
    CONSTRAINT file_confirmed_check CHECK (
        CASE status
            WHEN 'confirmed' THEN num_nonnulls(size_bytes, crc32c, uploaded_at) = 3
            ELSE uploaded_at IS NULL AND num_nonnulls(size_bytes, crc32c) IN (0, 2)
        END
    )
);

-- A path has at most one record per instrument.
CREATE UNIQUE INDEX file_path_key ON labdata.file (instrument_id, path_hash) WHERE instrument_id IS NOT NULL;
-- Lists, by instrument and extension. A server adds the index of searches when it starts (docs/adr/0017).
CREATE INDEX file_list_idx ON labdata.file (organization_id, uploaded_at DESC, id DESC) WHERE uploaded_at IS NOT NULL;
CREATE INDEX file_instrument_list_idx ON labdata.file (organization_id, instrument_id, uploaded_at DESC, id DESC)
    WHERE instrument_id IS NOT NULL;
CREATE INDEX file_extension_list_idx ON labdata.file (organization_id, extension, uploaded_at DESC, id DESC)
    WHERE uploaded_at IS NOT NULL;
CREATE INDEX file_instrument_extension_list_idx
    ON labdata.file (organization_id, instrument_id, extension, uploaded_at DESC, id DESC)
    WHERE uploaded_at IS NOT NULL AND instrument_id IS NOT NULL;
-- Lists of the files of one execution, in the order of lists.
CREATE INDEX file_job_execution_list_idx ON labdata.file (organization_id, job_execution_id, uploaded_at DESC, id DESC)
    WHERE job_execution_id IS NOT NULL;
-- Expired uploads, for the sweeper.
CREATE INDEX file_upload_expires_at_idx ON labdata.file (upload_expires_at) WHERE upload_expires_at IS NOT NULL;
-- Bytes of an organization's files, which quotas sum.
CREATE INDEX file_size_idx ON labdata.file (organization_id) INCLUDE (size_bytes, uploaded_at)
    WHERE size_bytes IS NOT NULL;
