ALTER TABLE labdata.job
    -- What runs are asked for, as the program writes it: a list of objects.
    ADD COLUMN parameter_definitions jsonb NOT NULL DEFAULT '[]';
