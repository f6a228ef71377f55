//! Rights of everyone and roles for queries after changes of the server's or the program's version,
//! and on a server that asks for passwords.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use labdata_domain::{data::query::QueryText, scalar::DataType};
use labdata_embedded_postgres::{Durability, EmbeddedPostgres, Settings};
use labdata_port_contracts::{
    catalog::definitions::{column, curated},
    given::at,
};
use labdata_ports::{
    catalog::CatalogStore as _,
    data::query::{Query, QueryRunner},
};
use labdata_postgres::{Database, DatabaseSettings, PgCatalogStore, PgQueryRunner};
use labdata_test_database::TestDatabase;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{UnixListener, UnixStream},
};

use crate::{
    managed_server::{managed_database, revoke_public},
    query_lab::{LIMITS, QueryLab, schema},
    texts,
};

/// Rights as a new version of PostgreSQL, or of the list in the program, finds them: a function, a
/// catalog and a column are open. The functions that earlier checks looked at are not.
const OPEN: &str = "GRANT EXECUTE ON FUNCTION pg_catalog.pg_sleep(float8) TO PUBLIC; \
     GRANT SELECT ON pg_catalog.pg_database TO PUBLIC; \
     GRANT SELECT (rolname) ON pg_catalog.pg_authid TO PUBLIC";

async fn open_rights(lab: &QueryLab) -> Vec<String> {
    let query = "SELECT concat_ws(' ', has_function_privilege('public', 'pg_catalog.pg_sleep(float8)', 'EXECUTE'), \
                 has_table_privilege('public', 'pg_catalog.pg_database', 'SELECT'), \
                 has_any_column_privilege('public', 'pg_catalog.pg_authid', 'SELECT'))";
    texts(&lab.behind, query).await
}

#[tokio::test]
async fn rights_that_another_version_brings_are_revoked_at_the_next_start() {
    let lab = QueryLab::new().await;
    lab.runner.prepare().await.expect("hardened");
    lab.run_behind(OPEN).await;
    assert_eq!(open_rights(&lab).await, ["t t t"]);
    let lab = lab.restarted();
    lab.runner.prepare().await.expect("hardened again");
    assert_eq!(open_rights(&lab).await, ["f f f"]);
}

/// Settings and connection limit of our role.
async fn role(lab: &QueryLab) -> Vec<String> {
    let query = format!(
        "SELECT concat_ws(' ', rolconnlimit, rolinherit, rolconfig) FROM pg_roles WHERE rolname = '{}_reader'",
        schema(lab.ours)
    );
    texts(&lab.behind, &query).await
}

/// Leaves our role as if another version had set it up.
async fn loosen(lab: &QueryLab) {
    let ours = schema(lab.ours);
    lab.run_behind(&format!(
        "ALTER ROLE {ours}_reader INHERIT CONNECTION LIMIT -1; ALTER ROLE {ours}_reader RESET ALL; \
         COMMENT ON SCHEMA {ours}_platform IS 'of another version'"
    ))
    .await;
}

#[tokio::test]
async fn a_role_that_another_version_set_up_is_hardened_again() {
    let lab = QueryLab::new().await;
    lab.rows("select 1").await;
    let hard = role(&lab).await;
    assert!(hard.concat().contains("statement_timeout=60s"), "{hard:?}");
    lab.settle().await;
    loosen(&lab).await;
    assert_ne!(role(&lab).await, hard);
    let lab = lab.restarted();
    lab.rows("select 1").await;
    assert_eq!(role(&lab).await, hard);
}

#[tokio::test]
async fn servers_that_start_at_the_same_time_harden_one_database_safely() {
    let lab = QueryLab::new().await;
    lab.rows("select 1").await;
    let hard = role(&lab).await;
    lab.settle().await;
    loosen(&lab).await;
    lab.run_behind(OPEN).await;
    let query = Query {
        text: QueryText::parse("select count(*) from sample").expect("a query"),
        params: Vec::new(),
        limits: LIMITS,
        view: None,
    };
    let servers: Vec<_> = (0..4)
        .map(|_| PgQueryRunner::new(lab.database.clone(), &[7; 32]))
        .collect();
    let starts = servers.iter().map(|server| async {
        server.prepare().await.expect("hardened");
        for organization in [lab.ours, lab.theirs] {
            let result = server.run(organization, &query).await;
            assert_eq!(result.expect("rows").rows, ["[3]"]);
        }
    });
    futures::future::join_all(starts).await;
    assert_eq!(role(&lab).await, hard);
    assert_eq!(open_rights(&lab).await, ["f f f"]);
}

/// Passes connections on to a server, which seems to have another version once it is upgraded.
struct Upgradable {
    upgraded: Arc<AtomicBool>,
    directory: tempfile::TempDir,
}

impl Upgradable {
    fn before(server: PathBuf) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let socket = directory.path().join(".s.PGSQL.5432");
        let listener = UnixListener::bind(socket).expect("a socket");
        let upgraded = Arc::new(AtomicBool::new(false));
        let is_upgraded = Arc::clone(&upgraded);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (server, is_upgraded) = (server.clone(), Arc::clone(&is_upgraded));
                tokio::spawn(async move { pass(client, &server, &is_upgraded).await });
            }
        });
        Self {
            upgraded,
            directory,
        }
    }
}

async fn pass(client: UnixStream, server: &Path, is_upgraded: &AtomicBool) {
    let server = UnixStream::connect(server).await.expect("the server");
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    tokio::spawn(async move {
        // Either side may end it.
        let _ = tokio::io::copy(&mut from_client, &mut to_server).await;
        let _ = to_server.shutdown().await;
    });
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from_server.read(&mut buffer).await {
        let bytes = buffer.get_mut(..count).expect("read bytes");
        let name = b"server_version\0";
        let found = bytes.windows(name.len()).position(|part| part == name);
        if let Some(start) = found
            && is_upgraded.load(Ordering::Relaxed)
            && let Some(digit) = bytes.get_mut(start + name.len())
        {
            *digit = b'9';
        }
        if to_client.write_all(bytes).await.is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn an_upgrade_of_the_server_under_a_running_platform_hardens_it_again() {
    let own = TestDatabase::new().await;
    let config: tokio_postgres::Config = own.url().parse().expect("a URL");
    let [tokio_postgres::config::Host::Unix(sockets)] = config.get_hosts() else {
        panic!("no socket");
    };
    let proxy = Upgradable::before(sockets.join(".s.PGSQL.5432"));
    let directory = proxy.directory.path().display().to_string();
    let database = config.get_dbname().expect("a name");
    let url = format!(
        "postgresql://labdata@{}/{database}",
        directory.replace('/', "%2F")
    );
    let behind = own.url().to_owned();
    let lab = QueryLab::at(&url, &behind, Some(own)).await;
    lab.rows("select 1").await;
    lab.run_behind(OPEN).await;
    // The connection that waits was opened before.
    lab.spare().await;
    proxy.upgraded.store(true, Ordering::Relaxed);
    lab.rows("select 1").await;
    lab.spare().await;
    lab.rows("select 1").await;
    assert_eq!(open_rights(&lab).await, ["f f f"]);
    assert_eq!(lab.rows("select count(*) from sample").await, json!([[3]]));
}

#[tokio::test]
async fn a_role_for_queries_is_not_entered_without_its_password() {
    let directory = tempfile::Builder::new()
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .tempdir()
        .expect("a directory");
    let server = EmbeddedPostgres::start(Settings {
        data_dir: directory.path().to_owned(),
        bin_dir: std::env::var_os("LABDATA_PG_BIN_DIR").map(PathBuf::from),
        durability: Durability::Durable,
    })
    .await
    .expect("a server");
    let url = server.database_url();
    let database = Database::new(url, DatabaseSettings::default()).expect("a pool");
    labdata_postgres::migrate(&database)
        .await
        .expect("migrated");
    let lab = QueryLab::at(url, url, None).await;
    for _ in 0..2 {
        assert_eq!(lab.rows("select count(*) from sample").await, json!([[3]]));
    }
    let (_, host) = url.split_once('@').expect("a host");
    for password in ["", ":", ":guess"] {
        let url = format!("postgresql://{}_reader{password}@{host}", schema(lab.ours));
        let refused = tokio_postgres::connect(&url, tokio_postgres::NoTls).await;
        assert!(refused.is_err(), "{password:?}");
    }
    // With a password that is lost, such as in a restored dump, the role is repaired.
    lab.run_behind(&format!(
        "ALTER ROLE {}_reader PASSWORD 'another'",
        schema(lab.ours)
    ))
    .await;
    // The first query may use a connection that waited.
    for _ in 0..2 {
        lab.rows("select 1").await;
    }
    drop((lab, database));
    server.stop().await.expect("a stop");
}

#[tokio::test]
async fn what_is_open_on_the_server_of_another_is_named_and_revoked_by_the_script_for_its_administrator()
 {
    let (url, own) = managed_database().await;
    let behind = own.url().to_owned();
    let lab = QueryLab::at(&url, &behind, Some(own)).await;
    let open = async || {
        labdata_postgres::inspect(&lab.database)
            .await
            .unwrap()
            .open_to_everyone
    };
    let all = [
        "pg_sleep",
        "advisory locks",
        "the catalogs",
        "large objects",
        "temporary tables",
        "CONNECT",
    ];
    assert_eq!(open().await, all);
    revoke_public(&behind).await;
    assert_eq!(open().await, Vec::<String>::new());
    // Again, as after an upgrade.
    revoke_public(&behind).await;

    // The platform lacks nothing, and the role of an organization has what its queries need.
    assert_eq!(lab.rows("select count(*) from sample").await, json!([[3]]));
    let rights = format!(
        "SELECT concat_ws(' ', has_function_privilege(r, 'pg_advisory_lock(bigint)', 'EXECUTE'), \
         has_function_privilege(r, 'pg_sleep(float8)', 'EXECUTE'), has_table_privilege(r, 'pg_locks', 'SELECT'), \
         has_database_privilege(r, current_database(), 'CONNECT')) FROM (VALUES ('{}_reader'::name)) v (r)",
        schema(lab.ours)
    );
    assert_eq!(texts(&lab.behind, &rights).await, ["f f f t"]);
}

#[tokio::test]
async fn nothing_is_named_where_the_platform_revokes_it_itself() {
    let lab = QueryLab::new().await;
    let state = labdata_postgres::inspect(&lab.database).await.unwrap();
    assert_eq!(state.open_to_everyone, Vec::<String>::new());
}

#[tokio::test]
async fn the_key_of_a_lock_follows_from_no_name_that_a_query_sees() {
    let (one, other) = (QueryLab::managed().await, QueryLab::managed().await);
    one.rows("select 1").await;
    let name = format!(
        "SELECT labdata.lock_key('tables {}')::text",
        one.ours.as_uuid()
    );
    assert_ne!(
        texts(&one.behind, &name).await,
        texts(&other.behind, &name).await
    );
    let schemas = format!(
        "SELECT has_schema_privilege('{}_reader', 'labdata', 'USAGE')::text",
        schema(one.ours)
    );
    assert_eq!(texts(&one.behind, &schemas).await, ["false"]);

    // Both halves of the id, as they stand in the names of schemas, are held by someone else.
    let (high, low) = one.ours.as_uuid().as_u64_pair();
    for half in [high, low] {
        let key = i64::from_be_bytes(half.to_be_bytes());
        one.run_behind(&format!("SELECT pg_advisory_lock({key})"))
            .await;
    }
    let tables = PgCatalogStore::new(one.database.clone());
    let further = curated("further", vec![column("note", DataType::Text)]);
    let defined = tables.define(one.ours, &further, at(1));
    let in_time = tokio::time::timeout(std::time::Duration::from_secs(5), defined).await;
    in_time.expect("no wait for the lock").expect("defined");
}

#[tokio::test]
async fn a_restored_database_gets_another_secret_of_locks() {
    let lab = QueryLab::new().await;
    let key = "SELECT labdata.lock_key('x')::text";
    let before = texts(&lab.behind, key).await;
    lab.run_behind("DELETE FROM labdata.server_secret").await;
    labdata_postgres::migrate(&lab.database)
        .await
        .expect("nothing to migrate");
    let after = texts(&lab.behind, key).await;
    assert_ne!(before, after);
}
