//! Killed servers, killed hosts, and the cleanup after them.

use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::chown;

use labdata_embedded_postgres::{Durability, EmbeddedPostgres, Settings};

use crate::support::{
    Host, data_dir, eventually, kill_9, postmaster, query, servers_of, settings, start,
};

#[tokio::test]
async fn a_killed_postmaster_is_restarted_while_serving() {
    let directory = data_dir();
    let durable = Settings {
        durability: Durability::Durable,
        ..settings(directory.path())
    };
    let server = EmbeddedPostgres::start(durable).await.expect("start");
    let url = server.database_url();
    query(url, "CREATE TABLE kept AS SELECT 7 AS answer")
        .await
        .expect("table");
    for round in 0..2 {
        let before = postmaster(directory.path()).expect("postmaster");
        kill_9(before);
        eventually("a new postmaster answers", async || {
            postmaster(directory.path()).is_some_and(|pid| pid != before)
                && query(url, "SELECT answer FROM kept").await.as_deref() == Ok("7")
        })
        .await;
        assert!(!server.attached(), "round {round}");
    }
    server.stop().await.expect("stop");
    assert!(servers_of(directory.path()).is_empty());
}

#[tokio::test]
async fn a_killed_host_takes_its_server_along_and_the_next_start_works() {
    let directory = data_dir();
    let host = Host::spawn(Some(directory.path()), None);
    query(&host.url, "CREATE TABLE kept AS SELECT 7 AS answer")
        .await
        .expect("table");
    host.kill_9();
    // The start itself waits for the shutdown.
    let server = start(directory.path()).await;
    assert!(!server.attached());
    let response = query(server.database_url(), "SELECT answer FROM kept").await;
    assert_eq!(response.as_deref(), Ok("7"));
    server.stop().await.expect("stop");
}

#[cfg(target_os = "linux")] // Elsewhere the next start stops the orphan.
#[tokio::test]
async fn a_killed_host_leaves_no_process_behind() {
    let directory = data_dir();
    let host = Host::spawn(Some(directory.path()), None);
    assert!(!servers_of(directory.path()).is_empty());
    host.kill_9();
    eventually("the server ends", async || {
        servers_of(directory.path()).is_empty()
    })
    .await;
}

#[tokio::test]
async fn a_guest_takes_over_from_a_killed_owner() {
    let directory = data_dir();
    let owner = Host::spawn(Some(directory.path()), None);
    let guest = start(directory.path()).await;
    assert!(guest.attached());
    owner.kill_9();
    eventually("the guest takes over", async || {
        !guest.attached() && query(guest.database_url(), "SELECT 1").await.is_ok()
    })
    .await;
    guest.stop().await.expect("stop");
}

#[tokio::test]
async fn host_and_postmaster_killed_at_once_are_recovered_from() {
    let directory = data_dir();
    let host = Host::spawn(Some(directory.path()), None);
    query(&host.url, "CREATE TABLE kept AS SELECT 7 AS answer")
        .await
        .expect("table");
    // Commits are not synchronous in this server.
    query(&host.url, "CHECKPOINT").await.expect("checkpoint");
    kill_9(postmaster(directory.path()).expect("postmaster"));
    host.kill_9();
    let server = start(directory.path()).await;
    let response = query(server.database_url(), "SELECT answer FROM kept").await;
    assert_eq!(response.as_deref(), Ok("7"));
    server.stop().await.expect("stop");
}

#[tokio::test]
async fn stale_lock_files_that_name_another_program_are_removed() {
    let directory = data_dir();
    start(directory.path()).await.stop().await.expect("stop");

    // A program of the server's user, which PostgreSQL would mistake for a running server.
    let cluster = directory.path().join("postgres");
    let owner = cluster.metadata().expect("cluster");
    let mut bystander = std::process::Command::new("sleep");
    std::os::unix::process::CommandExt::uid(&mut bystander, owner.uid());
    let mut bystander = bystander.arg("600").spawn().expect("a bystander");
    let file = cluster.join("postmaster.pid");
    let text = format!(
        "{}\n{}\n1\n5432\n/x\n\n  1 1\nready   \n",
        bystander.id(),
        cluster.display()
    );
    std::fs::write(&file, text).expect("pid file");
    chown(&file, Some(owner.uid()), Some(owner.gid())).expect("owner");
    let socket_lock = directory.path().join("postgres-run/.s.PGSQL.5432.lock");
    std::fs::copy(&file, &socket_lock).expect("lock file of the socket");
    chown(&socket_lock, Some(owner.uid()), Some(owner.gid())).expect("owner");

    let server = start(directory.path()).await;
    assert_eq!(
        query(server.database_url(), "SELECT 1").await.as_deref(),
        Ok("1")
    );
    assert!(
        bystander.try_wait().expect("status").is_none(),
        "the bystander lives"
    );
    bystander.kill().expect("killed");
    bystander.wait().expect("reaped");
    server.stop().await.expect("stop");
}
