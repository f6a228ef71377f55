DROP INDEX labdata.file_size_idx;
