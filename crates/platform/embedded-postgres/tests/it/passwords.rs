//! Password of the superuser.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use labdata_embedded_postgres::{Durability, EmbeddedPostgres, Settings};

use crate::support::{data_dir, query, settings};

/// Access rules of clusters that earlier versions have made.
const TRUST: &str = "local all all trust\nhost all all 127.0.0.1/32 reject\n";

async fn start(directory: &Path) -> EmbeddedPostgres {
    let settings = Settings {
        durability: Durability::Durable,
        ..settings(directory)
    };
    EmbeddedPostgres::start(settings).await.expect("a start")
}

/// Starts and stops a server, and returns its password.
async fn start_once(directory: &Path) -> String {
    start(directory).await.stop().await.expect("a stop");
    fs::read_to_string(password_file(directory)).expect("a password")
}

fn password_file(directory: &Path) -> PathBuf {
    directory.join("postgres-password")
}

fn rules_file(directory: &Path) -> PathBuf {
    directory.join("postgres/pg_hba.conf")
}

/// The URL with another password, or none.
fn with_password(url: &str, password: &str) -> String {
    let (_, host) = url.split_once('@').expect("a host");
    format!("postgresql://labdata{password}@{host}")
}

/// Asserts that the server accepts the password in the file, and nothing else.
async fn assert_asks_for_password(server: &EmbeddedPostgres, directory: &Path) {
    let url = server.database_url();
    let file = password_file(directory);
    let password = fs::read_to_string(&file).expect("a password");
    assert_eq!(url, with_password(url, &format!(":{password}")));
    assert_eq!(
        query(url, "SELECT current_user").await.as_deref(),
        Ok("labdata")
    );
    for wrong in ["", ":labdata", &format!(":{}", "0".repeat(64))] {
        let refused = query(&with_password(url, wrong), "SELECT 1").await;
        let refused = refused.expect_err(wrong);
        // SQLSTATE 28P01 from the server, or the client's own refusal to send none.
        assert!(
            refused.contains("28P01") || refused.contains("password missing"),
            "{refused}"
        );
    }
    let found = fs::metadata(&file).expect("the file");
    assert_eq!(found.permissions().mode() & 0o7777, 0o600);
    assert_eq!(found.uid(), rustix::process::geteuid().as_raw());
    let stored =
        "SELECT rolpassword LIKE 'SCRAM-SHA-256$%' FROM pg_authid WHERE rolname = 'labdata'";
    assert_eq!(query(url, stored).await.as_deref(), Ok("t"));
    let log = fs::read_to_string(directory.join("postgres.log")).expect("a log");
    assert!(!log.contains(&password));
    assert!(!format!("{server:?}").contains(&password));
}

#[tokio::test]
async fn a_client_that_reaches_the_socket_without_the_password_is_refused() {
    let directory = data_dir();
    let server = start(directory.path()).await;
    assert_asks_for_password(&server, directory.path()).await;
    let replication = format!(
        "{}?replication=database",
        with_password(server.database_url(), "")
    );
    assert!(query(&replication, "IDENTIFY_SYSTEM").await.is_err());
    server.stop().await.expect("a stop");
}

#[tokio::test]
async fn a_cluster_that_trusted_everyone_asks_for_a_password_from_its_next_start_on() {
    let directory = data_dir();
    let server = start(directory.path()).await;
    query(
        server.database_url(),
        "ALTER ROLE labdata PASSWORD NULL; CREATE TABLE kept AS SELECT 42 AS answer",
    )
    .await
    .expect("a table");
    server.stop().await.expect("a stop");
    fs::remove_file(password_file(directory.path())).expect("removed");
    fs::write(rules_file(directory.path()), TRUST).expect("written");

    let server = start(directory.path()).await;
    assert_asks_for_password(&server, directory.path()).await;
    let stored = query(server.database_url(), "SELECT answer FROM kept").await;
    assert_eq!(stored.as_deref(), Ok("42"));
    let url = server.database_url().to_owned();
    server.stop().await.expect("a stop");
    let replaced = rules_file(directory.path()).with_extension("conf.replaced");
    assert_eq!(fs::read_to_string(replaced).expect("a copy"), TRUST);

    let server = start(directory.path()).await;
    assert_eq!(server.database_url(), url, "the password stays");
    server.stop().await.expect("a stop");
}

#[tokio::test]
async fn a_start_that_died_while_it_set_the_password_is_repeated() {
    let directory = data_dir();
    let password = start_once(directory.path()).await;
    let file = password_file(directory.path());
    let rules = rules_file(directory.path());
    let asking = fs::read_to_string(&rules).expect("rules");
    let other = "0123456789abcdef".repeat(4);

    // After the role got a password, before the file got its name; with a lost file too.
    for found in [TRUST, &asking] {
        fs::rename(&file, file.with_extension("new")).expect("renamed");
        fs::write(&rules, found).expect("written");
        let server = start(directory.path()).await;
        assert_asks_for_password(&server, directory.path()).await;
        assert_ne!(
            server.database_url(),
            with_password(server.database_url(), &format!(":{password}"))
        );
        server.stop().await.expect("a stop");
    }
    // After the file got its name, before the rules changed. The role has an earlier password.
    fs::write(&file, &other).expect("written");
    fs::write(&rules, TRUST).expect("written");
    let server = start(directory.path()).await;
    assert_asks_for_password(&server, directory.path()).await;
    assert_eq!(fs::read_to_string(&file).expect("a password"), other);
    server.stop().await.expect("a stop");
    // While the rules were replaced.
    fs::rename(&rules, rules.with_extension("conf.new")).expect("renamed");
    let server = start(directory.path()).await;
    assert_asks_for_password(&server, directory.path()).await;
    server.stop().await.expect("a stop");
}

#[tokio::test]
async fn a_file_that_others_may_read_is_closed_and_a_broken_one_replaced() {
    let directory = data_dir();
    let password = start_once(directory.path()).await;
    let file = password_file(directory.path());
    fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).expect("a mode");
    let server = start(directory.path()).await;
    assert_asks_for_password(&server, directory.path()).await;
    server.stop().await.expect("a stop");

    fs::write(&file, &password[..63]).expect("written");
    let server = start(directory.path()).await;
    assert_asks_for_password(&server, directory.path()).await;
    server.stop().await.expect("a stop");
}

#[tokio::test]
async fn an_attached_process_knows_the_password() {
    let directory = data_dir();
    let owner = start(directory.path()).await;
    let guest = start(directory.path()).await;
    assert!(guest.attached());
    assert_eq!(guest.database_url(), owner.database_url());
    assert_asks_for_password(&guest, directory.path()).await;
    guest.stop().await.expect("detached");
    owner.stop().await.expect("a stop");
}
