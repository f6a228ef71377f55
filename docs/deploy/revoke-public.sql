-- Revokes from PUBLIC, in the platform's database, what queries of organizations do not need, and grants it to the role
-- that owns the database. For a PostgreSQL on which the platform's role is no superuser (`labdata doctor` says what is open).
-- Run by a superuser, in the platform's database, and again after an upgrade of PostgreSQL:
--
--     psql --dbname lab --file revoke-public.sql
--
-- The platform itself runs the same statements where its role is a superuser.
\set ON_ERROR_STOP on
BEGIN;
SELECT pg_advisory_xact_lock(7810758472110137394);
DO $harden$
DECLARE
    f regprocedure;
    t regclass;
    platform text;
BEGIN
    SELECT quote_ident(r.rolname) INTO platform FROM pg_catalog.pg_database d
    JOIN pg_catalog.pg_roles r ON r.oid = d.datdba
    WHERE d.datname = current_database() AND NOT r.rolsuper;
    FOR f IN 
SELECT oid FROM pg_catalog.pg_proc
WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind IN ('f', 'w')
AND (proname ~ '^(pg_|lo_|has_.*_privilege$|to_reg|reg.*out$|txid_|inet_|brin_|acl|binary_upgrade_|ts_rewrite)'
    OR proname ~ '_to_xml'
    OR proname IN ('set_config', 'loread', 'lowrite', 'ts_stat', 'makeaclitem', 'format_type',
        'obj_description', 'col_description', 'shobj_description', 'oidvectortypes',
        'currtid2', 'nextval', 'currval', 'setval', 'lastval'))
AND proname NOT IN ('pg_typeof', 'pg_size_pretty', 'pg_size_bytes')
AND has_function_privilege('public', oid, 'EXECUTE')
    LOOP
        IF platform IS NOT NULL THEN
            EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s WITH GRANT OPTION', f, platform);
        END IF;
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', f);
    END LOOP;
    IF platform IS NOT NULL THEN
        FOR t IN SELECT oid FROM pg_catalog.pg_class
            WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind IN ('r', 'v')
            AND has_table_privilege('public', oid, 'SELECT')
        LOOP
            EXECUTE format('GRANT SELECT ON %s TO %s WITH GRANT OPTION', t, platform);
        END LOOP;
        EXECUTE format('GRANT USAGE ON SCHEMA information_schema TO %s WITH GRANT OPTION', platform);
        EXECUTE format('GRANT USAGE ON LANGUAGE plpgsql, sql TO %s', platform);
    END IF;
    EXECUTE format('REVOKE CONNECT, TEMPORARY ON DATABASE %I FROM PUBLIC', current_database());
    IF to_regnamespace('public') IS NOT NULL THEN
        REVOKE ALL ON SCHEMA public FROM PUBLIC;
    END IF;
END
$harden$;
REVOKE ALL ON ALL TABLES IN SCHEMA pg_catalog FROM PUBLIC;
REVOKE USAGE ON SCHEMA information_schema FROM PUBLIC;
REVOKE USAGE ON LANGUAGE plpgsql, sql FROM PUBLIC;
COMMIT;
