//! A database that goes away and comes back.

use std::{process::Command, time::Duration};

use labdata_embedded_postgres::throwaway::ThrowawayServer;
use labdata_ports::{PortError, people::tenancy::TenancyRepository};
use labdata_postgres::{Database, DatabaseSettings, PgTenancyRepository, migrate};
use labdata_test_database::TestDatabase;

use crate::{look_behind, texts};

/// Opens several connections of the pool, and leaves them to rest there.
async fn warm(database: &Database) {
    let probes = (0..4).map(|_| database.probe());
    for probe in futures::future::join_all(probes).await {
        probe.expect("a sign of life");
    }
}

#[tokio::test]
async fn connections_that_the_server_closed_fail_no_request() {
    let own = TestDatabase::new().await;
    let database = Database::new(own.url(), DatabaseSettings::default()).expect("a pool");
    warm(&database).await;
    let client = look_behind(own.url()).await;
    let others = "SELECT pg_terminate_backend(pid)::text FROM pg_stat_activity \
                  WHERE datname = current_database() AND pid <> pg_backend_pid()";
    let closed = texts(&client, others).await;
    assert!(
        closed.len() > 1,
        "several connections were in the pool: {closed:?}"
    );
    tokio::time::sleep(Duration::from_millis(600)).await;
    for _ in 0..8 {
        database.probe().await.expect("a fresh connection");
    }
}

#[tokio::test]
async fn requests_succeed_again_after_the_server_was_killed_and_restarted() {
    let server = ThrowawayServer::start().await.expect("a server of its own");
    let database =
        Database::new(&server.url("labdata"), DatabaseSettings::default()).expect("a pool");
    migrate(&database).await.expect("migrated");
    warm(&database).await;
    let tenancy = PgTenancyRepository::new(database.clone());
    assert_eq!(tenancy.organizations().await.expect("an answer"), []);

    let killed = postmaster(&server).await.expect("the server's process");
    let status = Command::new("sh")
        .args(["-c", &format!("kill -KILL {killed}")])
        .status();
    assert!(status.expect("kill").success());

    // The supervisor starts it again; requests before that fail because it does not respond, and
    // nothing of where it is.
    while postmaster(&server)
        .await
        .is_none_or(|current| current == killed)
    {
        match tenancy.organizations().await {
            // The killed server's connections live on for a moment.
            Ok(organizations) => assert_eq!(organizations, []),
            Err(PortError::Unavailable(text)) => assert_eq!(text, "the database does not respond"),
            Err(other) => panic!("{other:?}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for _ in 0..8 {
        tenancy
            .organizations()
            .await
            .expect("no dead connection is lent");
    }
    warm(&database).await;
}

/// The process id of the server, while it answers.
async fn postmaster(server: &ThrowawayServer) -> Option<String> {
    let url = server.url("labdata");
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls)
        .await
        .ok()?;
    tokio::spawn(connection);
    let query = "SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)";
    client
        .query_one(query, &[])
        .await
        .ok()
        .map(|row| row.get(0))
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable_and_not_named() {
    let url = "postgresql://lab:secret@127.0.0.1:1/labdata";
    let database = Database::new(url, DatabaseSettings::default()).expect("a pool");
    for error in [database.probe().await, migrate(&database).await.map(drop)] {
        match error {
            Err(PortError::Unavailable(text)) => assert_eq!(text, "the database does not respond"),
            other => panic!("{other:?}"),
        }
    }
    assert!(!format!("{database:?}").contains("secret"));
}
