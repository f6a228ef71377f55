-- A source file; its bytes lie in the object storage under `object_key`.
CREATE TABLE labdata.file (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL,
    instrument_id uuid,
    job_execution_id uuid,
    source_type text NOT NULL,
    status text NOT NULL,
    -- The name or path as its uploader gave it, and what the program derives from it: the last part of it; the whole
    -- without regard to case, in which searches look; the first 32 characters of its extension, likewise; its SHA-256,
    -- as an index cannot hold long paths.
    original_path text NOT NULL,
    file_name text NOT NULL,
    path_folded text NOT NULL,
    extension text,
    path_hash bytea NOT NULL,
    content_type text NOT NULL,
    object_key uuid NOT NULL,
    -- When the upload URL stops working, while the bytes are awaited.
    upload_expires_at timestamptz,
    -- Once the bytes are confirmed: how many, their CRC-32C (base64 of its 4 big-endian bytes), and when.
    size_bytes bigint,
    crc32c text,
    uploaded_at timestamptz,
    -- When the source file was created, where that is known.
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
        num_nonnulls(size_bytes, crc32c, uploaded_at) = CASE status WHEN 'confirmed' THEN 3 ELSE 0 END
    )
);

-- Within one instrument a path has at most one record.
CREATE UNIQUE INDEX file_path_key ON labdata.file (instrument_id, path_hash) WHERE instrument_id IS NOT NULL;
-- Listings: all files, those of an instrument, those with an extension.
CREATE INDEX file_list_idx ON labdata.file (organization_id, uploaded_at DESC, id DESC) WHERE uploaded_at IS NOT NULL;
CREATE INDEX file_instrument_list_idx ON labdata.file (organization_id, instrument_id, uploaded_at DESC, id DESC)
    WHERE instrument_id IS NOT NULL;
CREATE INDEX file_extension_list_idx ON labdata.file (organization_id, extension, uploaded_at DESC, id DESC)
    WHERE uploaded_at IS NOT NULL;
CREATE INDEX file_job_execution_id_idx ON labdata.file (organization_id, job_execution_id)
    WHERE job_execution_id IS NOT NULL;
-- What the sweeper of unconfirmed uploads looks for.
CREATE INDEX file_upload_expires_at_idx ON labdata.file (upload_expires_at) WHERE upload_expires_at IS NOT NULL;
