DROP TABLE labdata.run_log_chunk;
DROP TABLE labdata.run_log;
