-- Lists of an instrument's files with an extension.
CREATE INDEX file_instrument_extension_list_idx
    ON labdata.file (organization_id, instrument_id, extension, uploaded_at DESC, id DESC)
    WHERE uploaded_at IS NOT NULL AND instrument_id IS NOT NULL;
