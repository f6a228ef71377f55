//! The share of one organization in the connections.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use labdata_domain::data::write::WritePlan;
use labdata_port_contracts::data::lab::{Lab, insert, request, writing_time};
use labdata_ports::{
    PortError,
    data::{DataStore, WriteError},
};
use labdata_postgres::DatabaseSettings;
use serde_json::json;

use crate::{contracts::Postgres, look_behind, query_lab::schema, texts};

const WAITING: &str = "SELECT count(*)::text FROM pg_stat_activity \
     WHERE datname = current_database() AND wait_event_type = 'Lock'";

async fn until_waiting(behind: &tokio_postgres::Client, count: &str) {
    let until = Instant::now() + Duration::from_secs(20);
    while texts(behind, WAITING).await != [count] {
        // Within a transaction the view would show the same over and over.
        let clear = "SELECT pg_stat_clear_snapshot()";
        behind.batch_execute(clear).await.expect("a fresh view");
        assert!(Instant::now() < until, "{count} statements should wait");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn small(lab: &Lab, name: &str) -> WritePlan {
    let rows = json!([{ "name": name }]);
    lab.plan(request([insert("sample", rows)], []))
        .await
        .expect("a plan")
}

async fn write(lab: &Lab, plan: &WritePlan) -> Result<(), WriteError> {
    let target = Lab::new_execution("import");
    lab.apply(plan, target, writing_time()).await.map(drop)
}

#[tokio::test]
async fn a_flood_of_small_writes_takes_no_connection_beyond_its_organizations_share() {
    let harness = Postgres::with(DatabaseSettings {
        max_connections: 3,
        wait: Duration::from_millis(500),
        ..DatabaseSettings::default()
    })
    .await;
    let greedy = Lab::with_tables(&harness).await;
    let other = Lab::named(&harness, "other").await;
    other.define_tables().await;
    let (mine, theirs) = (small(&greedy, "a").await, small(&other, "b").await);
    for (lab, name) in [(&greedy, "first"), (&other, "first")] {
        // Only writes of a known job are combined.
        write(lab, &small(lab, name).await).await.expect("a write");
    }
    let behind = look_behind(harness.url()).await;
    let tables = schema(greedy.organization);
    let lock = format!("BEGIN; LOCK TABLE {tables}.measurement IN ACCESS EXCLUSIVE MODE");
    let plan = greedy.read_plan("measurement", json!({}), 1).await;
    behind.batch_execute(&lock).await.expect("a lock");
    let slow: Vec<_> = (0..2)
        .map(|_| {
            let (data, plan) = (Arc::clone(&greedy.data), plan.clone());
            let organization = greedy.organization;
            tokio::spawn(async move { data.read(organization, &plan).await.map(drop) })
        })
        .collect();
    until_waiting(&behind, "2").await;
    // Its share is two connections of three, which its reads hold.
    let refused = write(&greedy, &mine).await;
    assert!(
        matches!(refused, Err(WriteError::Port(PortError::Exhausted(_)))),
        "{refused:?}"
    );
    write(&other, &theirs)
        .await
        .expect("a write beside the flood");
    behind.batch_execute("COMMIT").await.expect("an end");
    for read in slow {
        read.await.expect("a task").expect("a page");
    }
    write(&greedy, &mine)
        .await
        .expect("a write after the flood");
}

#[tokio::test]
async fn a_statement_that_would_run_for_ever_is_ended_by_its_timeout() {
    let harness = Postgres::with(DatabaseSettings {
        max_connections: 1,
        statement_timeout: Duration::from_millis(300),
        ..DatabaseSettings::default()
    })
    .await;
    let lab = Lab::with_tables(&harness).await;
    let plan = lab.read_plan("sample", json!({}), 1).await;
    let behind = look_behind(harness.url()).await;
    let tables = schema(lab.organization);
    let lock = format!("BEGIN; LOCK TABLE {tables}.sample IN ACCESS EXCLUSIVE MODE");
    behind.batch_execute(&lock).await.expect("a lock");
    let data: &dyn DataStore = &*lab.data;
    let ended = data.read(lab.organization, &plan).await;
    assert!(ended.is_err(), "{ended:?}");
    behind.batch_execute("COMMIT").await.expect("an end");
    data.read(lab.organization, &plan).await.expect("a page");
}

/// The rows come slowly after the first ones: what is left on the way is cancelled, and the only
/// connection serves the next request at once.
#[tokio::test]
async fn a_read_that_is_left_among_its_rows_keeps_no_connection() {
    let harness = Postgres::with(DatabaseSettings {
        max_connections: 1,
        ..DatabaseSettings::default()
    })
    .await;
    let lab = Lab::with_tables(&harness).await;
    let note = "x".repeat(20_000);
    let rows = (0..20).map(|number| json!({ "name": number.to_string(), "note": note }));
    lab.insert("sample", rows.collect()).await;
    let behind = look_behind(harness.url()).await;
    // Reads of the table wait before each row but the first.
    let tables = schema(lab.organization);
    let slow = format!(
        "CREATE FUNCTION public.slowly(key text, name text) RETURNS text LANGUAGE plpgsql STABLE \
         COST 100000 AS $$ BEGIN IF key <> (SELECT max(id) FROM {tables}.sample_rows) \
         THEN PERFORM pg_sleep(5); END IF; RETURN name; END $$; \
         ALTER TABLE {tables}.sample RENAME TO sample_rows; \
         CREATE VIEW {tables}.sample AS SELECT id, public.slowly(id, name) AS name, volume, note, \
         created_at, updated_at, created_by_execution_id, updated_by_execution_id FROM {tables}.sample_rows"
    );
    behind.batch_execute(&slow).await.expect("a slow table");
    let plan = lab.read_plan("sample", json!({}), 20).await;
    let data = Arc::clone(&lab.data);
    let organization = lab.organization;
    let reading = tokio::spawn({
        let plan = plan.clone();
        async move { data.read(organization, &plan).await }
    });
    let sleeping = "SELECT count(*)::text FROM pg_stat_activity \
         WHERE datname = current_database() AND wait_event = 'PgSleep'";
    let until = Instant::now() + Duration::from_secs(20);
    while texts(&behind, sleeping).await != ["1"] {
        assert!(Instant::now() < until, "the read should wait");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // The first row is with the client, long before the next.
    tokio::time::sleep(Duration::from_millis(200)).await;
    reading.abort();
    let begun = Instant::now();
    lab.tables().await;
    assert!(
        begun.elapsed() < Duration::from_secs(3),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(texts(&behind, sleeping).await, ["0"]);
}
