-- The platform's own tables. Each organization's tables lie in schemas of their own, `org_<id>`.
-- The program makes this schema before it runs the first migration, to keep its record of migrations here.
CREATE SCHEMA IF NOT EXISTS labdata;
