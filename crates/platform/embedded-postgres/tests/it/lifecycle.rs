//! Start, stop and attachment.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::Instant;

use labdata_embedded_postgres::{Durability, EmbeddedPostgres, Error, Settings};

use crate::support::{
    Host, data_dir, directory_with_mode, eventually, query, servers_of, settings, start,
};

#[tokio::test]
async fn a_cold_start_makes_the_database_and_a_warm_start_keeps_it() {
    let directory = data_dir();
    let durable = || Settings {
        durability: Durability::Durable,
        ..settings(directory.path())
    };

    let begin = Instant::now();
    let server = EmbeddedPostgres::start(durable())
        .await
        .expect("cold start");
    let cold = begin.elapsed();
    assert!(!server.attached());
    let url = server.database_url().to_owned();
    let facts = "SELECT concat_ws(' ', current_user, current_database(), \
                 (SELECT rolsuper FROM pg_roles WHERE rolname = current_user), \
                 (SELECT pg_encoding_to_char(encoding) FROM pg_database \
                  WHERE datname = current_database()), \
                 current_setting('fsync'), current_setting('listen_addresses'))";
    assert_eq!(
        query(&url, facts).await.expect("query"),
        "labdata labdata t UTF8 on "
    );
    query(&url, "CREATE TABLE kept AS SELECT 42 AS answer")
        .await
        .expect("table");
    assert_eq!(
        query(&server.maintenance_url("postgres"), "SELECT 1")
            .await
            .expect("query"),
        "1"
    );
    server.stop().await.expect("stop");
    assert!(query(&url, "SELECT 1").await.is_err());
    assert!(servers_of(directory.path()).is_empty());

    let begin = Instant::now();
    let server = EmbeddedPostgres::start(durable())
        .await
        .expect("warm start");
    let warm = begin.elapsed();
    println!("cold start {cold:?}, warm start {warm:?}");
    assert_eq!(server.database_url(), url);
    assert_eq!(
        query(&url, "SELECT answer FROM kept").await.expect("query"),
        "42"
    );
    server.stop().await.expect("stop");
}

#[tokio::test]
async fn only_the_servers_account_may_enter_the_socket_directory() {
    let directory = data_dir();
    let server = start(directory.path()).await;
    let cluster = directory
        .path()
        .join("postgres")
        .metadata()
        .expect("cluster");
    let sockets = directory
        .path()
        .join("postgres-run")
        .metadata()
        .expect("socket directory");
    assert_eq!(sockets.mode() & 0o7777, 0o700);
    assert_eq!(sockets.uid(), cluster.uid());
    if rustix::process::geteuid().is_root() {
        assert_ne!(cluster.uid(), 0, "the server does not run as root");
    }
    server.stop().await.expect("stop");
}

#[tokio::test]
async fn a_private_data_directory_of_root_lets_the_server_pass() {
    let directory = directory_with_mode(0o700);
    let server = start(directory.path()).await;
    assert_eq!(
        query(server.database_url(), "SELECT 1")
            .await
            .expect("query"),
        "1"
    );
    let mode = directory.path().metadata().expect("directory").mode() & 0o077;
    assert_eq!(mode & 0o066, 0, "nobody may list or write");
    server.stop().await.expect("stop");
}

#[tokio::test]
async fn below_a_private_home_the_cluster_is_placed_elsewhere_and_found_again() {
    if !rustix::process::geteuid().is_root() {
        return; // Only root's server runs as another user.
    }
    let home = directory_with_mode(0o700);
    let directory = home.path().join("lab/.labdata");
    let server = start(&directory).await;
    query(server.database_url(), "CREATE TABLE kept ()")
        .await
        .expect("table");
    server.stop().await.expect("stop");

    let place = std::fs::read_link(directory.join("postgres")).expect("a link");
    assert!(place.starts_with("/var/lib/labdata"), "{place:?}");
    assert_eq!(
        home.path().metadata().expect("home").mode() & 0o777,
        0o700,
        "untouched"
    );

    let server = start(&directory).await;
    query(server.database_url(), "SELECT FROM kept")
        .await
        .expect("the same cluster");
    server.stop().await.expect("stop");

    std::fs::remove_dir_all(place.parent().expect("place")).expect("removed");
    let error = EmbeddedPostgres::start(settings(&directory))
        .await
        .expect_err("gone");
    assert!(matches!(error, Error::ClusterUnreachable { .. }), "{error}");
}

#[tokio::test]
async fn a_long_path_is_no_obstacle() {
    let directory = data_dir();
    let deep = directory.path().join("d".repeat(120));
    std::fs::create_dir(&deep).expect("directory");
    std::fs::set_permissions(&deep, PermissionsExt::from_mode(0o755)).expect("mode");
    let server = start(&deep).await;
    assert_eq!(
        query(server.database_url(), "SELECT 1")
            .await
            .expect("query"),
        "1"
    );
    let sockets = query(server.database_url(), "SHOW unix_socket_directories")
        .await
        .expect("query");
    server.stop().await.expect("stop");
    assert!(sockets.starts_with("/tmp/labdata-"), "{sockets}");
    std::fs::remove_dir_all(sockets).expect("removed");
}

#[tokio::test]
async fn a_second_instance_attaches_and_does_not_stop_the_server() {
    let directory = data_dir();
    let owner = start(directory.path()).await;
    let guest = start(directory.path()).await;
    assert!(guest.attached() && !owner.attached());
    assert_eq!(guest.database_url(), owner.database_url());
    guest.stop().await.expect("detach");
    assert_eq!(
        query(owner.database_url(), "SELECT 1")
            .await
            .expect("query"),
        "1"
    );
    owner.stop().await.expect("stop");
}

#[tokio::test]
async fn an_attached_instance_takes_over_when_the_owner_stops() {
    let directory = data_dir();
    let owner = Host::spawn(Some(directory.path()), None);
    let guest = start(directory.path()).await;
    assert!(guest.attached() && !owner.attached);
    owner.finish();
    eventually("the guest takes over", async || {
        !guest.attached() && query(guest.database_url(), "SELECT 1").await.is_ok()
    })
    .await;
    guest.stop().await.expect("stop");
    assert!(
        servers_of(directory.path()).is_empty(),
        "the new owner stops its server"
    );
}

#[tokio::test]
async fn instances_that_start_at_the_same_time_share_one_server() {
    let directory = data_dir();
    let (one, two, three) = tokio::join!(
        start(directory.path()),
        start(directory.path()),
        start(directory.path())
    );
    let attached = [&one, &two, &three]
        .iter()
        .filter(|server| server.attached())
        .count();
    assert_eq!(attached, 2);
    for server in [one, two, three] {
        server.stop().await.expect("stop");
    }
}

#[tokio::test]
async fn dropping_without_stop_ends_the_server() {
    let directory = data_dir();
    drop(start(directory.path()).await);
    eventually("the server ends", async || {
        servers_of(directory.path()).is_empty()
    })
    .await;
}

#[tokio::test]
async fn a_cancelled_start_leaves_no_server() {
    let directory = data_dir();
    let soon = std::time::Duration::from_millis(1);
    let cancelled = tokio::time::timeout(soon, start(directory.path())).await;
    assert!(cancelled.is_err());
    let server = start(directory.path()).await;
    server.stop().await.expect("stop");
    // The second start may have attached to the first one's server, which ends by itself.
    eventually("the server ends", async || {
        servers_of(directory.path()).is_empty()
    })
    .await;
}

#[tokio::test]
async fn a_directory_that_is_no_cluster_is_left_alone() {
    let directory = data_dir();
    let precious = directory.path().join("postgres/precious.txt");
    std::fs::create_dir(directory.path().join("postgres")).expect("directory");
    std::fs::write(&precious, "data").expect("file");
    let error = EmbeddedPostgres::start(settings(directory.path()))
        .await
        .expect_err("no cluster");
    assert!(matches!(error, Error::NotACluster { .. }), "{error}");
    assert!(precious.exists());
}

#[tokio::test]
async fn an_interrupted_first_start_is_repeated() {
    let directory = data_dir();
    let half = directory.path().join("postgres.new");
    std::fs::create_dir(&half).expect("directory");
    std::fs::write(half.join("PG_VERSION"), "15\n").expect("file");
    let server = start(directory.path()).await;
    assert_eq!(
        query(server.database_url(), "SELECT 1")
            .await
            .expect("query"),
        "1"
    );
    assert!(!half.exists());
    server.stop().await.expect("stop");
}

#[tokio::test]
async fn a_wrong_bin_dir_is_refused_and_named() {
    let directory = data_dir();
    let wrong = Settings {
        bin_dir: Some(Path::new("/nowhere/bin").to_owned()),
        ..settings(directory.path())
    };
    let message = EmbeddedPostgres::start(wrong)
        .await
        .expect_err("wrong")
        .to_string();
    assert!(
        message.contains("LABDATA_PG_BIN_DIR is /nowhere/bin"),
        "{message}"
    );
}

#[tokio::test]
async fn a_server_that_cannot_start_says_why() {
    let directory = data_dir();
    start(directory.path()).await.stop().await.expect("stop");
    let configuration = directory.path().join("postgres/postgresql.conf");
    std::fs::write(&configuration, "no_such_setting = on\n").expect("configuration");
    let message = EmbeddedPostgres::start(settings(directory.path()))
        .await
        .expect_err("broken")
        .to_string();
    assert!(
        message.contains("no_such_setting") && message.contains("postgres.log"),
        "{message}"
    );
}
