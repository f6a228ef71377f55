UPDATE labdata.file SET size_bytes = NULL, crc32c = NULL WHERE status = 'awaiting_bytes' AND size_bytes IS NOT NULL;
ALTER TABLE labdata.file
    DROP CONSTRAINT file_confirmed_check,
    ADD CONSTRAINT file_confirmed_check CHECK (
        num_nonnulls(size_bytes, crc32c, uploaded_at) = CASE status WHEN 'confirmed' THEN 3 ELSE 0 END
    );
