//! Copies of the database, beside the platform's own work.

use labdata_domain::scalar::DataType;
use labdata_port_contracts::{Harness, catalog::definitions, fixtures::Tenants, given::at};
use labdata_ports::{
    PortError,
    catalog::{CatalogStore, DefineError},
    files::FileRepository,
};
use labdata_postgres::{
    Database, DatabaseSettings, PgCatalogStore, PgFileRepository, Snapshot, is_empty, server_major,
};
use labdata_test_database::TestDatabase;

use crate::contracts::Postgres;

#[tokio::test]
async fn objects_are_kept_from_the_snapshot_to_the_end_of_the_backup() {
    let own = TestDatabase::new().await;
    let database = Database::new(own.url(), DatabaseSettings::default()).unwrap();
    let files = PgFileRepository::new(database.clone());
    assert!(!files.are_objects_retained().await.unwrap());
    let mut first = Snapshot::take(&database, own.url()).await.unwrap();
    let second = Snapshot::take(&database, own.url()).await.unwrap();
    assert!(files.are_objects_retained().await.unwrap());
    assert_eq!(first.next_objects().await.unwrap(), []);
    first.release().await.unwrap();
    drop(second);
    first.check().await.unwrap();
    assert!(files.are_objects_retained().await.unwrap());
    drop(first);
    // The server notices that a connection has closed when it does.
    while files.are_objects_retained().await.unwrap() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn tables_of_a_snapshot_stay_as_they_are_until_it_is_released() {
    let harness = Postgres::fresh().await;
    let database = Database::new(harness.url(), DatabaseSettings::default()).unwrap();
    let lab = harness.organization("lab").await.id;
    let tables = PgCatalogStore::new(database.clone());
    let samples = definitions::sample();
    let mut more = samples.clone();
    let barcode = definitions::column("barcode", DataType::String);
    more.columns.push(barcode);
    tables.define(lab, &samples, at(0)).await.unwrap();

    let mut snapshot = Snapshot::take(&database, harness.url()).await.unwrap();
    for refused in [
        tables.define(lab, &more, at(1)).await.map(|_| ()),
        tables.drop_column(lab, "sample", "note", true, at(1)).await,
        tables.drop_table(lab, "sample", true, at(1)).await,
    ] {
        let is_refused = matches!(refused, Err(DefineError::Port(PortError::Unavailable(_))));
        assert!(is_refused, "{refused:?}");
    }
    // The definition as it is, and a table that the snapshot has not got.
    tables.define(lab, &samples, at(1)).await.unwrap();
    let new = definitions::measurement();
    tables.define(lab, &new, at(1)).await.unwrap();

    snapshot.release().await.unwrap();
    tables.define(lab, &more, at(2)).await.unwrap();
    let forced = tables.drop_table(lab, "measurement", true, at(2));
    forced.await.unwrap();
}

#[tokio::test]
async fn backups_of_other_databases_do_not_matter() {
    let (own, other) = (TestDatabase::new().await, TestDatabase::new().await);
    let [own_database, database] = [&own, &other]
        .map(|database| Database::new(database.url(), DatabaseSettings::default()).unwrap());
    let _snapshot = Snapshot::take(&database, other.url()).await.unwrap();
    let files = PgFileRepository::new(own_database);
    assert!(!files.are_objects_retained().await.unwrap());
}

#[tokio::test]
async fn only_a_database_without_the_platform_is_empty() {
    let (used, unused) = (TestDatabase::new().await, TestDatabase::unmigrated().await);
    for (own, expected) in [(&used, false), (&unused, true)] {
        let database = Database::new(own.url(), DatabaseSettings::default()).unwrap();
        assert_eq!(is_empty(&database).await.unwrap(), expected);
        assert!(server_major(&database).await.unwrap() >= 15);
    }
}
