-- How files of an instrument are read (docs/adr/0045).
ALTER TABLE labdata.instrument
    -- Name of a reader, or 'auto'; null if files are not read. The program knows the readers.
    ADD COLUMN reader text,
    -- IANA name of the zone of the files' times.
    ADD COLUMN timezone text,
    -- Reader that took the instrument's files last, which 'auto' tries first.
    ADD COLUMN last_reader text;
