//! SQL that changes the names of constraints of stored tables.

use crate::database::sql::literal;

/// Maximum length of a name in PostgreSQL, in bytes.
const MAX_IDENTIFIER: usize = 63;

/// Gives constraints and indexes of a renamed table the names that they would have as new ones,
/// because refusals name them. One retains its name if the other is taken or too long.
pub(super) fn rename_constraints_of_table(stored: &str, from: &str, to: &str) -> String {
    format!(
        "DO $rename$ DECLARE found record; BEGIN \
         FOR found IN SELECT c.conname AS name, true AS is_constraint FROM pg_constraint c \
           WHERE c.conrelid = {relation}::regclass AND c.contype IN ('p', 'u', 'f') \
           UNION ALL SELECT i.relname, false FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid \
           WHERE x.indrelid = {relation}::regclass \
           AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.oid AND c.conrelid = x.indrelid) \
         LOOP \
           DECLARE wanted text := {to} || substr(found.name, octet_length({from}) + 1); BEGIN \
           IF starts_with(found.name, {from} || '_') AND octet_length(wanted) <= {MAX_IDENTIFIER} \
           AND NOT EXISTS (SELECT FROM pg_constraint WHERE conrelid = {relation}::regclass AND conname = wanted) \
           AND NOT EXISTS (SELECT FROM pg_class r JOIN pg_class own ON own.oid = {relation}::regclass \
             WHERE r.relnamespace = own.relnamespace AND r.relname = wanted) THEN \
             IF found.is_constraint THEN \
               EXECUTE format('ALTER TABLE {stored} RENAME CONSTRAINT %I TO %I', found.name, wanted); \
             ELSE \
               EXECUTE format('ALTER INDEX %I.%I RENAME TO %I', \
                 (SELECT n.nspname FROM pg_namespace n JOIN pg_class own ON own.relnamespace = n.oid \
                  WHERE own.oid = {relation}::regclass), found.name, wanted); \
             END IF; \
           END IF; END; \
         END LOOP; END $rename$",
        relation = literal(stored),
        from = literal(from),
        to = literal(to),
    )
}

/// Gives constraints over a renamed column the names that they would have as new ones, because
/// refusals name them. One retains its name if the other is taken or too long.
pub(super) fn rename_constraints(stored: &str, column: &str) -> String {
    format!(
        // Names are looked up, not derived: PostgreSQL shortens long ones and adds numbers to taken ones.
        "DO $rename$ DECLARE found record; BEGIN \
         FOR found IN SELECT c.conname, c.connamespace, r.relname || '_' || \
           (SELECT string_agg(a.attname, '_' ORDER BY k.place) FROM unnest(c.conkey) WITH ORDINALITY k(number, place) \
            JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.number) || \
           CASE c.contype WHEN 'u' THEN '_key' ELSE '_fkey' END AS wanted \
           FROM pg_constraint c JOIN pg_class r ON r.oid = c.conrelid \
           JOIN pg_attribute named ON named.attrelid = c.conrelid AND named.attnum = ANY (c.conkey) \
           WHERE c.conrelid = {relation}::regclass AND c.contype IN ('u', 'f') AND named.attname = {column} \
         LOOP \
           IF octet_length(found.wanted) <= {MAX_IDENTIFIER} \
           AND NOT EXISTS (SELECT FROM pg_constraint WHERE conrelid = {relation}::regclass AND conname = found.wanted) \
           AND NOT EXISTS (SELECT FROM pg_class WHERE relnamespace = found.connamespace AND relname = found.wanted) THEN \
             EXECUTE format('ALTER TABLE {stored} RENAME CONSTRAINT %I TO %I', found.conname, found.wanted); \
           END IF; \
         END LOOP; END $rename$",
        relation = literal(stored),
        column = literal(column),
    )
}
