DROP TABLE labdata.training_backend;
DROP TABLE labdata.ml_model_version;
DROP TABLE labdata.ml_model;
DROP TABLE labdata.dataset;
