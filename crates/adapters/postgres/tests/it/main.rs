//! Tests of the adapter on a real server.
//!
//! One binary: all tests share one throwaway server, and each has a separate database.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests, their helpers included: what is not as expected fails them"
)]

mod audit;
mod backup;
mod broken_commits;
mod contracts;
mod data_concurrency;
mod data_properties;
mod event_log;
mod events;
mod failure_notices;
mod file_lists;
mod hostile_queries;
mod managed_server;
mod migrations;
mod query;
mod query_attacks;
mod query_hardening;
mod query_lab;
mod query_lexing;
mod query_memory;
mod query_spares;
mod query_stream;
mod random;
mod restarts;
mod rows;
mod schema_facts;
mod sessions;
mod shares;
mod sql_logins;
mod tls;
mod undone;
mod units_of_work;

/// A connection past the adapter, to look behind it.
async fn look_behind(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls)
        .await
        .expect("a connection");
    tokio::spawn(connection);
    client
}

/// The first column of every row, as text.
async fn texts(client: &tokio_postgres::Client, query: &str) -> Vec<String> {
    let rows = client.query(query, &[]).await.expect(query);
    rows.iter().map(|row| row.get(0)).collect()
}
