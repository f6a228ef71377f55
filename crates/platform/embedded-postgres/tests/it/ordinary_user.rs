//! Tests as an ordinary user; if they run as root, in a process that drops root.

use std::os::unix::fs::{MetadataExt, chown};

use crate::support::{Host, data_dir, query, servers_of, start};

/// User with a name on every system, which `initdb` requires.
const NOBODY: u32 = 65534;

#[tokio::test]
async fn an_ordinary_user_runs_the_server_himself() {
    if !rustix::process::geteuid().is_root() {
        return; // Then all the other tests show it.
    }
    let directory = data_dir();
    chown(directory.path(), Some(NOBODY), Some(NOBODY)).expect("owner");
    let host = Host::spawn(Some(directory.path()), Some(NOBODY));
    assert!(!host.attached);
    let cluster = directory
        .path()
        .join("postgres")
        .metadata()
        .expect("cluster");
    assert_eq!(cluster.uid(), NOBODY);
    assert_eq!(query(&host.url, "SELECT 1").await.as_deref(), Ok("1"));
    host.finish();
    assert!(servers_of(directory.path()).is_empty());

    // Later, root runs the cluster as its owner.
    let server = start(directory.path()).await;
    assert_eq!(
        query(server.database_url(), "SELECT 1").await.as_deref(),
        Ok("1")
    );
    server.stop().await.expect("stop");
}
