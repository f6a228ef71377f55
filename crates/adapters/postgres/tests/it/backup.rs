//! Copies of the database, beside the platform's own work.

use labdata_ports::files::FileRepository;
use labdata_postgres::{
    Database, DatabaseSettings, PgFileRepository, Snapshot, is_empty, server_major,
};
use labdata_test_database::TestDatabase;

#[tokio::test]
async fn objects_are_kept_from_the_snapshot_to_the_end_of_the_backup() {
    let own = TestDatabase::new().await;
    let database = Database::new(own.url(), DatabaseSettings::default()).unwrap();
    let files = PgFileRepository::new(database.clone());
    assert!(!files.are_objects_kept().await.unwrap());
    let mut first = Snapshot::take(&database, own.url()).await.unwrap();
    let second = Snapshot::take(&database, own.url()).await.unwrap();
    assert!(files.are_objects_kept().await.unwrap());
    assert_eq!(first.next_objects().await.unwrap(), []);
    first.release().await.unwrap();
    drop(second);
    first.check().await.unwrap();
    assert!(files.are_objects_kept().await.unwrap());
    drop(first);
    // The server notices that a connection has closed when it does.
    while files.are_objects_kept().await.unwrap() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn backups_of_other_databases_do_not_matter() {
    let (own, other) = (TestDatabase::new().await, TestDatabase::new().await);
    let [own_database, database] = [&own, &other]
        .map(|database| Database::new(database.url(), DatabaseSettings::default()).unwrap());
    let _snapshot = Snapshot::take(&database, other.url()).await.unwrap();
    let files = PgFileRepository::new(own_database);
    assert!(!files.are_objects_kept().await.unwrap());
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
