DROP TABLE labdata.periodic_task;
