-- Size and checksum are known once the platform's own endpoint has received the bytes, also before they are confirmed.
ALTER TABLE labdata.file
    DROP CONSTRAINT file_confirmed_check,
    ADD CONSTRAINT file_confirmed_check CHECK (
        CASE status
            WHEN 'confirmed' THEN num_nonnulls(size_bytes, crc32c, uploaded_at) = 3
            ELSE uploaded_at IS NULL AND num_nonnulls(size_bytes, crc32c) IN (0, 2)
        END
    );
