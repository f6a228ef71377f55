DROP INDEX labdata.file_path_grams_idx;
DROP FUNCTION labdata.path_grams(uuid, text);
DROP INDEX labdata.file_instrument_extension_list_idx;
