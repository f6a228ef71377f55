-- The record of migrations may lie in the schema, and outlives it then.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_class WHERE relnamespace = 'labdata'::regnamespace) THEN
        DROP SCHEMA labdata;
    END IF;
END
$$;
