//! Facts about every table of the platform, read from PostgreSQL's catalog.

use labdata_test_database::TestDatabase;

use crate::{look_behind, texts};

/// Tables that belong to no organization by a reference of their own: the organization itself, the
/// platform's secrets, refresh tokens that go with their session, migrations, periodic tasks and training backends, parts that go with their table's definition, the event log
/// and what webhooks receive, which outlive what they refer to, sign-ins whose organization is not known yet, and the ledger,
/// which is written with its execution or while that is locked (docs/adr/0016).
const WITHOUT_ORGANIZATION: [&str; 16] = [
    "__diesel_schema_migrations",
    "catalog_column",
    "catalog_unique",
    "deleted_version",
    "event_log",
    "oidc_session",
    "oidc_used_attempt",
    "organization",
    "periodic_task",
    "row_change",
    "server_secret",
    "table_access",
    "training_backend",
    "webhook_delivery",
    "webhook_outbox",
    "write_ledger",
];

async fn offenders(query: &str) -> Vec<String> {
    let database = TestDatabase::new().await;
    texts(&look_behind(database.url()).await, query).await
}

#[tokio::test]
async fn every_foreign_key_has_an_index() {
    // The key's columns, in any order, are the first ones of an index; one that leaves out nulls
    // serves as well, as nulls reference nothing.
    let without = offenders(
        "SELECT c.conrelid::regclass || '.' || c.conname FROM pg_constraint c \
         WHERE c.contype = 'f' AND c.connamespace = 'labdata'::regnamespace AND NOT EXISTS ( \
             SELECT FROM pg_index i WHERE i.indrelid = c.conrelid \
             AND (i.indpred IS NULL OR pg_get_expr(i.indpred, i.indrelid) ~ '^\\(\\w+ IS NOT NULL\\)$' \
                  AND pg_get_expr(i.indpred, i.indrelid) IN ( \
                      SELECT format('(%s IS NOT NULL)', a.attname) FROM pg_attribute a \
                      WHERE a.attrelid = c.conrelid AND a.attnum = ANY (c.conkey))) \
             AND (i.indkey::int2[])[0:cardinality(c.conkey) - 1] @> c.conkey)",
    )
    .await;
    assert_eq!(without, [""; 0]);
}

#[tokio::test]
async fn every_tenant_table_has_its_organization() {
    let without = offenders(
        "SELECT c.relname::text FROM pg_class c \
         WHERE c.relnamespace = 'labdata'::regnamespace AND c.relkind = 'r' AND NOT EXISTS ( \
             SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'organization_id' \
             AND a.attnotnull AND EXISTS ( \
                 SELECT FROM pg_constraint f WHERE f.conrelid = c.oid AND f.contype = 'f' \
                 AND a.attnum = ANY (f.conkey))) ORDER BY c.relname",
    )
    .await;
    assert_eq!(without, WITHOUT_ORGANIZATION);
}

#[tokio::test]
async fn no_reference_between_tenant_tables_crosses_organizations() {
    let crossing = offenders(
        "SELECT c.conrelid::regclass || '.' || c.conname FROM pg_constraint c \
         JOIN pg_attribute own ON own.attrelid = c.conrelid AND own.attname = 'organization_id' \
         JOIN pg_attribute other ON other.attrelid = c.confrelid AND other.attname = 'organization_id' \
         WHERE c.contype = 'f' AND c.connamespace = 'labdata'::regnamespace \
         AND NOT (own.attnum = ANY (c.conkey) AND other.attnum = ANY (c.confkey))",
    )
    .await;
    assert_eq!(crossing, [""; 0]);
}

#[tokio::test]
async fn every_column_with_a_closed_set_of_values_is_checked() {
    let unchecked = offenders(
        "SELECT a.attrelid::regclass || '.' || a.attname FROM pg_attribute a \
         JOIN pg_class c ON c.oid = a.attrelid \
         WHERE c.relnamespace = 'labdata'::regnamespace AND c.relkind = 'r' \
         AND a.attname ~ '^(status|origin|action|scopes|data_type|.*_category|source_type)$' \
         AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conrelid = c.oid AND k.contype = 'c' \
             AND k.conkey = ARRAY[a.attnum])",
    )
    .await;
    assert_eq!(unchecked, [""; 0]);
}

#[tokio::test]
async fn every_time_has_its_zone() {
    let without = offenders(
        "SELECT table_name || '.' || column_name FROM information_schema.columns \
         WHERE table_schema = 'labdata' AND table_name NOT LIKE '\\_\\_%' \
         AND data_type IN ('timestamp without time zone', 'date', 'time without time zone')",
    )
    .await;
    assert_eq!(without, [""; 0]);
}

#[tokio::test]
async fn the_outbox_of_webhooks_has_what_the_event_log_has() {
    let columns_of = |table: &str, except: &str| {
        format!(
            "SELECT column_name::text FROM information_schema.columns \
             WHERE table_schema = 'labdata' AND table_name = '{table}' \
             AND column_name <> ALL ('{except}') ORDER BY column_name"
        )
    };
    // The order of events is that of their times, and the transaction only orders the log.
    let logged = offenders(&columns_of("event_log", "{transaction_id}")).await;
    let filters = "{file_instrument_id,job_ids}";
    let waiting = offenders(&columns_of("webhook_outbox", filters)).await;
    assert_eq!(waiting, logged);
}

/// One line per column, `table.column type`, of what `schema.rs` declares.
fn declared() -> Vec<String> {
    let mut columns = Vec::new();
    let mut table = "";
    for line in include_str!("../../src/schema.rs").lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("labdata.") {
            table = rest.split(' ').next().unwrap_or_default();
        } else if !line.starts_with("diesel::")
            && let Some((column, data_type)) = line.split_once(" -> ")
        {
            columns.push(format!(
                "{table}.{column} {}",
                data_type.trim_end_matches(',')
            ));
        }
    }
    columns.sort();
    columns
}

#[tokio::test]
async fn the_program_declares_its_tables_as_they_are() {
    let mut stored = offenders(
        "SELECT concat(table_name, '.', column_name, ' ', \
             CASE is_nullable WHEN 'YES' THEN 'Nullable<' END, \
             CASE udt_name WHEN 'uuid' THEN 'Uuid' WHEN 'text' THEN 'Text' WHEN 'bool' THEN 'Bool' \
                 WHEN 'timestamptz' THEN 'Timestamptz' WHEN 'int8' THEN 'BigInt' \
                 WHEN 'bytea' THEN 'Bytea' WHEN 'jsonb' THEN 'Jsonb' WHEN '_text' THEN 'Array<Text>' WHEN '_uuid' THEN 'Array<Uuid>' ELSE udt_name END, \
             CASE is_nullable WHEN 'YES' THEN '>' END) \
         FROM information_schema.columns WHERE table_schema = 'labdata' \
         AND table_name NOT LIKE 'catalog\\_%' AND table_name NOT LIKE '\\_\\_%' \
         AND table_name NOT IN ('write_ledger', 'row_change', 'deleted_version', 'idempotency_key', 'event_log', 'audit_chain', 'audit_entry', \
             'user_group', 'group_member', 'table_access', 'webhook_outbox', 'saved_view', 'trash', 'trashed_annotation') ORDER BY 1",
    )
    .await;
    stored.sort();
    assert_eq!(declared(), stored);
}
