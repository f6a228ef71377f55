-- Groups of users (docs/adr/0047).
CREATE TABLE labdata.user_group (
    id uuid NOT NULL,
    organization_id uuid NOT NULL,
    name text NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT user_group_pkey PRIMARY KEY (id),
    CONSTRAINT user_group_name_key UNIQUE (organization_id, name),
    CONSTRAINT user_group_organization_id_id_key UNIQUE (organization_id, id),
    CONSTRAINT user_group_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES labdata.organization (id)
);

CREATE TABLE labdata.group_member (
    organization_id uuid NOT NULL,
    group_id uuid NOT NULL,
    user_id uuid NOT NULL,
    CONSTRAINT group_member_pkey PRIMARY KEY (group_id, user_id),
    CONSTRAINT group_member_group_id_fkey FOREIGN KEY (organization_id, group_id)
        REFERENCES labdata.user_group (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT group_member_user_id_fkey FOREIGN KEY (organization_id, user_id)
        REFERENCES labdata.app_user (organization_id, id)
);

CREATE INDEX group_member_group_id_idx ON labdata.group_member (organization_id, group_id);
CREATE INDEX group_member_user_id_idx ON labdata.group_member (organization_id, user_id);

-- The names of a user's groups, sorted.
CREATE FUNCTION labdata.group_names(organization uuid, member uuid) RETURNS text[] STABLE LANGUAGE sql
    SET search_path = pg_catalog, pg_temp
    RETURN ARRAY(
        SELECT g.name FROM labdata.group_member m JOIN labdata.user_group g ON g.id = m.group_id
        WHERE m.organization_id = organization AND m.user_id = member ORDER BY g.name COLLATE "C"
    );

-- The groups that may read or write a table. A table without rows here is everyone's.
CREATE TABLE labdata.table_access (
    table_id bigint NOT NULL,
    may text NOT NULL,
    group_id uuid NOT NULL,
    CONSTRAINT table_access_pkey PRIMARY KEY (table_id, may, group_id),
    CONSTRAINT table_access_may_check CHECK (may IN ('read', 'write')),
    CONSTRAINT table_access_table_id_fkey FOREIGN KEY (table_id) REFERENCES labdata.catalog_table (id) ON DELETE CASCADE,
    -- A group that is named here cannot be deleted: without it the table would be open.
    CONSTRAINT table_access_group_id_fkey FOREIGN KEY (group_id) REFERENCES labdata.user_group (id)
);

CREATE INDEX table_access_group_id_idx ON labdata.table_access (group_id);

-- The names of the groups that may read or write a table, sorted.
CREATE FUNCTION labdata.access_groups(of_table bigint, may_do text) RETURNS text[] STABLE LANGUAGE sql
    SET search_path = pg_catalog, pg_temp
    RETURN ARRAY(
        SELECT g.name FROM labdata.table_access a JOIN labdata.user_group g ON g.id = a.group_id
        WHERE a.table_id = of_table AND a.may = may_do ORDER BY g.name COLLATE "C"
    );

-- The only tables of a key; null for all.
ALTER TABLE labdata.api_key ADD COLUMN tables text[];
