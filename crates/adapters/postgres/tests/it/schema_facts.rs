//! What holds of every table of the platform, asked of PostgreSQL's own catalog.

use labdata_test_database::TestDatabase;
use tokio_postgres::NoTls;

/// The rows of a query in a migrated database.
async fn ask(query: &str) -> Vec<String> {
    let database = TestDatabase::new().await;
    let (client, connection) = tokio_postgres::connect(database.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    let rows = client.query(query, &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// Without one, deleting or changing the row that is pointed at reads the whole table. The order of
/// the leading columns does not matter; an index over the rows whose reference is set suffices.
#[tokio::test]
async fn every_foreign_key_has_an_index_whose_leading_columns_cover_it() {
    let bare = ask(
        "SELECT format('%s.%s', c.conrelid::regclass, c.conname)
         FROM pg_constraint c
         JOIN pg_namespace n ON n.oid = c.connamespace
         WHERE c.contype = 'f' AND n.nspname = 'labdata' AND NOT EXISTS (
             SELECT FROM pg_index i
             WHERE i.indrelid = c.conrelid
               AND (i.indkey::int2[])[0:cardinality(c.conkey) - 1] @> c.conkey
               AND (i.indpred IS NULL OR EXISTS (
                   SELECT FROM pg_attribute a
                   WHERE a.attrelid = c.conrelid AND a.attnum = ANY (c.conkey) AND NOT a.attnotnull
                     AND pg_get_expr(i.indpred, i.indrelid) = format('(%I IS NOT NULL)', a.attname))))
         ORDER BY 1",
    )
    .await;
    assert_eq!(bare, Vec::<String>::new(), "foreign keys without an index");
}

/// But for what belongs to a row that has one, and for what all organizations share.
#[tokio::test]
async fn every_table_of_tenants_names_the_organization() {
    let without = ask(
        "SELECT c.relname::text
         FROM pg_class c
         JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE n.nspname = 'labdata' AND c.relkind IN ('r', 'p') AND c.relname <> '__diesel_schema_migrations'
           AND NOT EXISTS (
             SELECT FROM pg_attribute a
             WHERE a.attrelid = c.oid AND a.attname = 'organization_id' AND a.attnotnull AND NOT a.attisdropped)
         ORDER BY 1",
    )
    .await;
    assert_eq!(without, ["catalog_column", "catalog_unique", "organization", "server_secret"]);
}

/// A reference between two tables of tenants that leaves the organization out could point into
/// another one.
#[tokio::test]
async fn no_reference_crosses_organizations() {
    let crossing = ask(
        "SELECT format('%s.%s', c.conrelid::regclass, c.conname)
         FROM pg_constraint c
         JOIN pg_namespace n ON n.oid = c.connamespace
         JOIN pg_attribute own ON own.attrelid = c.conrelid AND own.attname = 'organization_id'
         JOIN pg_attribute theirs ON theirs.attrelid = c.confrelid AND theirs.attname = 'organization_id'
         WHERE c.contype = 'f' AND n.nspname = 'labdata'
           AND NOT (own.attnum = ANY (c.conkey) AND theirs.attnum = ANY (c.confkey))
         ORDER BY 1",
    )
    .await;
    assert_eq!(crossing, Vec::<String>::new());
}
