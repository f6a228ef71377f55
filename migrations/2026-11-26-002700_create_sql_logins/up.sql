-- Logins of people's own tools (docs/adr/0050). Each active one has a role of PostgreSQL named after its id.
CREATE TABLE labdata.sql_login (
    id uuid NOT NULL,
    organization_id uuid NOT NULL,
    user_id uuid NOT NULL,
    name text NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    ended_at timestamptz,
    end_reason text,
    -- What its rights followed from when they were granted: catalog, role, groups, program.
    granted_for text,
    CONSTRAINT sql_login_pkey PRIMARY KEY (id),
    CONSTRAINT sql_login_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES labdata.organization (id),
    CONSTRAINT sql_login_user_id_fkey FOREIGN KEY (organization_id, user_id)
        REFERENCES labdata.app_user (organization_id, id),
    CONSTRAINT sql_login_end_reason_check CHECK (
        end_reason IN ('revoked', 'expired', 'user_disabled', 'not_shared', 'role_missing')
    ),
    CONSTRAINT sql_login_end_check CHECK ((ended_at IS NULL) = (end_reason IS NULL))
);

CREATE INDEX sql_login_list_idx ON labdata.sql_login (organization_id, created_at DESC, id DESC);
CREATE INDEX sql_login_user_id_idx ON labdata.sql_login (organization_id, user_id);

-- Name of the role of that login.
CREATE FUNCTION labdata.sql_role(login uuid) RETURNS text IMMUTABLE LANGUAGE sql
    SET search_path = pg_catalog, pg_temp
    RETURN 'sql_' || replace(login::text, '-', '');

-- What the rights of a user follow from at this moment.
CREATE FUNCTION labdata.sql_rights(organization uuid, member uuid) RETURNS text STABLE LANGUAGE sql
    SET search_path = pg_catalog, pg_temp
    RETURN (
        SELECT concat_ws(' ', o.catalog_version, u.role, (
            SELECT string_agg(m.group_id::text, ',' ORDER BY m.group_id) FROM labdata.group_member m
            WHERE m.organization_id = u.organization_id AND m.user_id = u.id
        ))
        FROM labdata.app_user u JOIN labdata.organization o ON o.id = u.organization_id
        WHERE u.organization_id = organization AND u.id = member
    );
