//! The load notices what is lost and what is doubled.

use std::time::{Duration, Instant};

use clap::Parser;
use labdata_load::Options;
use labdata_test_database::TestDatabase;
use tokio_postgres::{Client, NoTls};

use crate::{
    process::{Program, directory},
    work::platform_runs::KEY,
};

/// Time in which the load imports its first rows.
const FIRST_ROWS: Duration = Duration::from_secs(30);

/// Waits for imported rows, which the load does not change; returns their table.
async fn table_with_rows(client: &Client) -> String {
    let began = Instant::now();
    let tables = "SELECT quote_ident(schemaname) || '.load_sample' FROM pg_tables \
                  WHERE tablename = 'load_sample'";
    loop {
        if let Some(found) = client.query_opt(tables, &[]).await.unwrap() {
            let table: String = found.get(0);
            let count = format!("SELECT count(*) FROM {table} WHERE counter = 7");
            let rows: i64 = client.query_one(&count, &[]).await.unwrap().get(0);
            if rows > 1 {
                return table;
            }
        }
        assert!(began.elapsed() < FIRST_ROWS, "no rows were imported");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_and_a_doubled_row_are_reported() {
    let (directory, database) = (directory(), TestDatabase::new().await);
    let environment = [
        ("DATABASE_URL", database.url()),
        ("LABDATA_BOOTSTRAP_KEY", KEY),
    ];
    let server = Program::serve(directory.path(), &environment);
    let mut arguments = vec!["labdata-load", "--key", KEY, "--url", &server.url];
    arguments.extend(["--connections", "2", "--seconds", "4"]);
    arguments.extend(["--mix", "import=200,run=0,trigger=0"]);
    let options = Options::try_parse_from(arguments).unwrap();
    let load = tokio::spawn(labdata_load::run(options));

    let connected = tokio_postgres::connect(database.url(), NoTls).await;
    let (client, connection) = connected.unwrap();
    tokio::spawn(connection);
    let table = table_with_rows(&client).await;
    let imported = format!("SELECT id FROM {table} WHERE counter = 7 ORDER BY id LIMIT 1");
    let lost = format!("DELETE FROM {table} WHERE id = ({imported}) RETURNING name");
    let lost: String = client.query_one(&lost, &[]).await.unwrap().get(0);
    let doubled = format!(
        "INSERT INTO {table} (id, run, name, counter, created_by_execution_id) \
         SELECT 'copy', run, name, counter, created_by_execution_id FROM {table} \
         WHERE id = ({imported}) RETURNING name"
    );
    let doubled: String = client.query_one(&doubled, &[]).await.unwrap().get(0);

    let report = load.await.unwrap().unwrap();
    let problems = report.problems();
    assert_eq!(problems.len(), 2, "{report}");
    for expected in [
        format!("Sample {lost}: lost"),
        format!("Sample {doubled}: exists 2 times"),
    ] {
        let found = problems.iter().any(|text| text.starts_with(&expected));
        assert!(found, "{expected}: {problems:?}");
    }
}
