DROP FUNCTION labdata.event_horizon;
DROP TABLE labdata.event_log;
