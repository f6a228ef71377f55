use diesel::{QueryableByName, sql_types::Text};
use diesel_async::RunQueryDsl;
use labdata_test_database::TestDatabase;

use super::*;
use crate::database::transaction;

#[derive(QueryableByName)]
struct Displayed {
    #[diesel(sql_type = Text)]
    displayed: String,
}

async fn ask(connection: &mut AsyncPgConnection, query: &str) -> String {
    let query = diesel::sql_query(format!("SELECT ({query})::text AS displayed"));
    query
        .get_result::<Displayed>(connection)
        .await
        .expect("an answer")
        .displayed
}

fn pool(own: &TestDatabase, max_connections: usize, wait: Duration) -> Database {
    let settings = DatabaseSettings {
        max_connections,
        wait,
        ..DatabaseSettings::default()
    };
    Database::new(own.url(), settings).expect("a pool")
}

#[tokio::test]
async fn every_connection_is_set_up() {
    let own = TestDatabase::new().await;
    let database = pool(&own, 1, Duration::from_secs(1));
    let mut connection = database.connection().await.expect("a connection");
    for (setting, value) in [
        ("application_name", "labdata"),
        ("TimeZone", "UTC"),
        ("standard_conforming_strings", "on"),
        ("search_path", "pg_catalog"),
        ("lock_timeout", "10s"),
        ("statement_timeout", "2min"),
        ("idle_in_transaction_session_timeout", "1min"),
        ("work_mem", "16MB"),
        ("lc_messages", "C"),
    ] {
        let query = format!("SELECT current_setting('{setting}')");
        assert_eq!(ask(&mut connection, &query).await, value, "{setting}");
    }
    let mut alone = database.dedicated().await.expect("a connection of its own");
    assert_eq!(
        ask(&mut alone, "SELECT current_setting('lock_timeout')").await,
        "0"
    );
}

#[tokio::test]
async fn a_caller_that_waits_too_long_for_a_connection_gets_busy() {
    let own = TestDatabase::new().await;
    let database = pool(&own, 1, Duration::from_millis(50));
    let held = database.connection().await.expect("the only connection");
    let error = database.connection().await.map(drop);
    assert!(matches!(error, Err(PortError::Exhausted(_))), "{error:?}");
    drop(held);
    assert!(database.connection().await.is_ok());
}

#[tokio::test]
async fn a_request_waits_for_all_its_connections_together_no_longer_than_for_one() {
    let own = TestDatabase::new().await;
    // As for a key and for its operation, which have pools of their own.
    let wait = Duration::from_mins(1);
    let (keys, work) = (pool(&own, 1, wait), pool(&own, 1, wait));
    let held = keys.connection().await.expect("the only connection");
    let other = work.connection().await.expect("the only connection");
    let budget = Duration::from_millis(200);
    let request = async {
        let release = async {
            tokio::time::sleep(budget / 2).await;
            drop(held);
        };
        let (first, ()) = futures::join!(keys.connection(), release);
        assert!(first.is_ok());
        let second = work.connection().await.map(drop);
        assert!(matches!(second, Err(PortError::Exhausted(_))), "{second:?}");
        // What is free needs no budget.
        drop(other);
        assert!(work.connection().await.is_ok());
    };
    let started = std::time::Instant::now();
    waiting::with_budget(budget, request).await;
    assert!(started.elapsed() < wait / 2);
}

#[tokio::test]
async fn a_connection_that_was_left_in_a_transaction_is_closed_not_lent() {
    let own = TestDatabase::new().await;
    let database = pool(&own, 1, Duration::from_secs(10));
    let mut left = database.connection().await.expect("a connection");
    let first = ask(&mut left, "SELECT pg_backend_pid()").await;
    transaction::begin(&mut left).await.expect("a transaction");
    drop(left);
    let mut next = database.connection().await.expect("another connection");
    assert_ne!(ask(&mut next, "SELECT pg_backend_pid()").await, first);
}

#[tokio::test]
async fn a_healthy_connection_is_lent_again_after_a_rest() {
    let own = TestDatabase::new().await;
    let database = pool(&own, 4, Duration::from_secs(10));
    let mut connection = database.connection().await.expect("a connection");
    let first = ask(&mut connection, "SELECT pg_backend_pid()").await;
    drop(connection);
    tokio::time::sleep(TRUSTED_FOR * 2).await;
    let mut again = database.connection().await.expect("a connection");
    assert_eq!(ask(&mut again, "SELECT pg_backend_pid()").await, first);
}
