-- Copies of history in the trash have the column, too.
DO $$
DECLARE
    history regclass;
BEGIN
    FOR history IN
        SELECT c.oid FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        WHERE a.atttypid = 'labdata.named_array[]'::regtype AND c.relkind = 'r' AND NOT a.attisdropped
    LOOP
        EXECUTE format('UPDATE %s SET before = labdata.with_arrays(before, arrays) WHERE arrays IS NOT NULL', history);
        EXECUTE format('ALTER TABLE %s DROP COLUMN arrays', history);
    END LOOP;
END $$;
DROP FUNCTION labdata.with_arrays;
DROP TYPE labdata.named_array;
