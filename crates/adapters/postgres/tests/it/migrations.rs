//! Migrations: forwards, back and forwards again.

use futures::future::join_all;
use labdata_ports::PortError;
use labdata_postgres::{Database, DatabaseSettings, migrate, revert_all_migrations};
use labdata_test_database::TestDatabase;

use crate::{look_behind, texts};

/// Number of migrations: one directory each.
fn count() -> usize {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../migrations");
    std::fs::read_dir(directory)
        .expect("the migrations")
        .count()
}

fn pool(database: &TestDatabase) -> Database {
    Database::new(database.url(), DatabaseSettings::default()).expect("a pool")
}

/// All that the platform's schema holds: columns, constraints, indexes.
const CONTENTS: &str = "SELECT concat_ws(' ', table_name, column_name, data_type, is_nullable, \
        column_default, is_identity) FROM information_schema.columns WHERE table_schema = 'labdata' \
     UNION ALL SELECT concat_ws(' ', conrelid::regclass, conname, pg_get_constraintdef(oid)) \
        FROM pg_constraint WHERE connamespace = 'labdata'::regnamespace \
     UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'labdata' \
     ORDER BY 1";

#[tokio::test]
async fn forwards_back_and_forwards_again_is_the_same_schema() {
    let own = TestDatabase::unmigrated().await;
    let database = pool(&own);
    assert_eq!(migrate(&database).await.expect("forwards").len(), count());
    let client = look_behind(own.url()).await;
    let first = texts(&client, CONTENTS).await;
    assert!(first.len() > 100, "{first:?}");

    revert_all_migrations(&database).await.expect("back");
    let relations = "SELECT relname::text FROM pg_class \
                     WHERE relnamespace = 'labdata'::regnamespace AND relkind <> 'i'";
    assert_eq!(
        texts(&client, relations).await,
        ["__diesel_schema_migrations"]
    );

    assert_eq!(
        migrate(&database).await.expect("forwards again").len(),
        count()
    );
    assert_eq!(texts(&client, CONTENTS).await, first);
}

#[tokio::test]
async fn nothing_is_left_outside_of_the_platform_schema() {
    let own = TestDatabase::new().await;
    let client = look_behind(own.url()).await;
    let strangers =
        "SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace";
    assert_eq!(texts(&client, strangers).await, [""; 0]);
}

#[tokio::test]
async fn a_migrated_database_stays_as_it_is() {
    let own = TestDatabase::new().await;
    assert_eq!(migrate(&pool(&own)).await.expect("nothing to do"), [""; 0]);
}

#[tokio::test]
async fn of_racing_servers_each_migration_is_applied_by_one() {
    let own = TestDatabase::unmigrated().await;
    let servers: Vec<Database> = (0..4).map(|_| pool(&own)).collect();
    let applied = join_all(servers.iter().map(migrate)).await;
    let applied: usize = applied
        .into_iter()
        .map(|names| names.expect("migrated").len())
        .sum();
    assert_eq!(applied, count());
}

#[tokio::test]
async fn a_database_that_is_newer_than_the_program_is_refused() {
    let own = TestDatabase::new().await;
    let client = look_behind(own.url()).await;
    let newer =
        "INSERT INTO labdata.__diesel_schema_migrations (version) VALUES ('99991231235959')";
    client
        .batch_execute(newer)
        .await
        .expect("a newer migration");
    match migrate(&pool(&own)).await {
        Err(PortError::Internal(text)) => assert!(text.contains("newer"), "{text}"),
        other => panic!("{other:?}"),
    }
}
