DROP FUNCTION labdata.lock_key;
DROP TABLE labdata.server_secret;
DROP TABLE labdata.app_user;
DROP TABLE labdata.organization;
-- The record of migrations may be in the schema, and outlives it then.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_class WHERE relnamespace = 'labdata'::regnamespace) THEN
        -- With the extension of file searches.
        DROP SCHEMA labdata CASCADE;
    END IF;
END
$$;
