ALTER FUNCTION labdata.file_key(uuid, text) PARALLEL SAFE;
