ALTER TABLE labdata.instrument
    DROP COLUMN last_reader,
    DROP COLUMN timezone,
    DROP COLUMN reader;
