DELETE FROM labdata.event_log WHERE type LIKE 'instrument.%';
ALTER TABLE labdata.event_log DROP COLUMN instrument_id;
DROP TABLE labdata.device_period;
DROP TABLE labdata.device;
