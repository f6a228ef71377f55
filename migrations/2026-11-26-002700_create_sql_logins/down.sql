-- Roles are of the whole server: without the table nothing would find them.
DO $roles$
DECLARE
    login record;
BEGIN
    FOR login IN SELECT labdata.sql_role(id) AS role FROM labdata.sql_login
        WHERE labdata.sql_role(id) IN (SELECT rolname FROM pg_catalog.pg_roles)
    LOOP
        EXECUTE format('DROP OWNED BY %I', login.role);
        EXECUTE format('DROP ROLE %I', login.role);
    END LOOP;
END
$roles$;
DROP FUNCTION labdata.sql_rights;
DROP FUNCTION labdata.sql_role;
DROP TABLE labdata.sql_login;
