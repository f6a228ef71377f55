-- What was dropped goes with the trash.
DO $drop$
DECLARE
    held name;
BEGIN
    FOR held IN SELECT nspname FROM pg_catalog.pg_namespace WHERE nspname ~ '^org_[0-9a-f]{32}_trash_[0-9]+$' LOOP
        EXECUTE format('DROP SCHEMA %I CASCADE', held);
    END LOOP;
END
$drop$;

DROP TABLE labdata.trash;
