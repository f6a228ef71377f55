DROP TABLE labdata.training_attempt;
DROP TABLE labdata.run_nonce;
DROP TABLE labdata.work_log_chunk;
DROP TABLE labdata.work_log;
DROP TABLE labdata.work;
