-- The number of the entry in the trash of the table that was dropped since; it stays when that is purged. Another table
-- may have the name by then.
ALTER TABLE labdata.write_ledger ADD COLUMN trash_number bigint;
CREATE INDEX write_ledger_trash_number_idx ON labdata.write_ledger (trash_number) WHERE trash_number IS NOT NULL;

UPDATE labdata.write_ledger l SET trash_number = t.number
FROM (SELECT organization_id, name, max(number) AS number FROM labdata.trash WHERE kind = 'table' GROUP BY 1, 2) t
WHERE l.organization_id = t.organization_id AND l.table_name = t.name AND NOT EXISTS (
    SELECT FROM labdata.catalog_table c WHERE c.organization_id = l.organization_id AND c.name = l.table_name
);

-- Values of tables that were dropped for good. Core tables are in no catalog, but in their organization's schema.
UPDATE labdata.write_ledger l SET row_images = NULL
WHERE l.row_images IS NOT NULL AND l.trash_number IS NULL
AND NOT EXISTS (
    SELECT FROM labdata.catalog_table c WHERE c.organization_id = l.organization_id AND c.name = l.table_name
)
AND NOT EXISTS (
    SELECT FROM labdata.organization o JOIN pg_namespace n ON n.nspname = o.schema_name
    JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = l.table_name
    WHERE o.id = l.organization_id
);
