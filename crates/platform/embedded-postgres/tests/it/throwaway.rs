//! Cleanup of throwaway servers.

use std::path::PathBuf;

use labdata_embedded_postgres::throwaway::ThrowawayServer;

use crate::support::{Host, eventually, query, servers_of};

/// Returns the directories of a process's throwaway servers.
fn directories_of(process: u32) -> Vec<PathBuf> {
    let prefix = format!("labdata-throwaway-{process}-");
    ["/dev/shm".into(), std::env::temp_dir()]
        .iter()
        .filter_map(|parent: &PathBuf| std::fs::read_dir(parent).ok())
        .flat_map(Iterator::flatten)
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix))
        .map(|entry| entry.path())
        .collect()
}

#[tokio::test]
async fn databases_are_copied_from_a_template_and_all_goes_with_the_value() {
    let server = ThrowawayServer::start().await.expect("start");
    query(&server.url("labdata"), "CREATE TABLE t AS SELECT 3 AS x")
        .await
        .expect("table");
    let copy = "CREATE DATABASE copy TEMPLATE labdata STRATEGY file_copy";
    query(&server.url("postgres"), copy)
        .await
        .expect("database");
    assert_eq!(
        query(&server.url("copy"), "SELECT x FROM t")
            .await
            .as_deref(),
        Ok("3")
    );
    assert_eq!(
        query(&server.url("copy"), "SHOW fsync").await.as_deref(),
        Ok("off")
    );
    let directory = directory_of(&server);
    assert!(directory.is_dir());
    drop(server);
    assert!(!directory.exists());
    assert!(servers_of(&directory).is_empty());
}

#[tokio::test]
async fn a_killed_test_process_leaves_neither_server_nor_directory() {
    let host = Host::spawn(None, None);
    assert_eq!(query(&host.url, "SELECT 1").await.as_deref(), Ok("1"));
    let process = host.id();
    let directories = directories_of(process);
    assert_eq!(directories.len(), 1);
    host.kill_9();
    eventually("everything is gone", async || {
        directories_of(process).is_empty()
            && directories
                .iter()
                .all(|directory| servers_of(directory).is_empty())
    })
    .await;
}

fn directory_of(server: &ThrowawayServer) -> PathBuf {
    let config: tokio_postgres::Config = server.url("labdata").parse().expect("valid");
    match config.get_hosts() {
        [tokio_postgres::config::Host::Unix(sockets)] => {
            sockets.parent().expect("below the directory").to_owned()
        }
        other => panic!("not a socket: {other:?}"),
    }
}
