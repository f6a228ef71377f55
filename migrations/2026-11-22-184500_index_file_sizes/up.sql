-- Bytes of an organization's files, which quotas sum.
CREATE INDEX file_size_idx ON labdata.file (organization_id) INCLUDE (size_bytes, uploaded_at)
    WHERE size_bytes IS NOT NULL;
