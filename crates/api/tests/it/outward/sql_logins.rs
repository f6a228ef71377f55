//! `/api/v1/sql-logins`: over HTTP, and with psql against the whole program.

use std::{
    path::Path,
    process::{Command, Output},
    sync::Arc,
};

use labdata_api::system::SystemClock;
use labdata_application::{Services, outward::sql_logins::SqlAccess};
use labdata_domain::people::scope::Scope;
use labdata_memory::FixedClock;
use labdata_ports::Clock;
use reqwest::Method;
use serde_json::{Value, json};
use tokio_postgres::NoTls;

use crate::{
    process::{Program, directory, not_tested, postgresql_programs, run, text},
    server::{Client, TestServer, in_memory, send},
};

const PATH: &str = "/api/v1/sql-logins";

#[tokio::test]
async fn a_login_is_made_listed_and_revoked_by_who_reads() {
    let server = TestServer::start().await;
    let reader = server.client(&[Scope::Read]).await;
    let made = reader.post(PATH, &json!({"name": "psql"})).await;
    assert_eq!(made.headers["cache-control"], "no-store");
    let made = made.json(200);
    let (user, password) = (
        made["user"].as_str().unwrap(),
        made["password"].as_str().unwrap(),
    );
    let dsn = format!("postgresql://{user}:{password}@127.0.0.1:5433/labdata?sslmode=prefer");
    assert_eq!(made["dsn"], dsn);
    for tool in ["psql", "r", "matlab", "duckdb", "grafana"] {
        let example = made["examples"][tool].as_str().unwrap();
        assert!(example.contains(password), "{example}");
    }
    let one = format!("{PATH}/{}", made["id"].as_str().unwrap());
    let displayed = reader.get(&one).await.json(200);
    assert_eq!(displayed["user"], user);
    assert!(!displayed.to_string().contains(password));
    assert_eq!(reader.get(PATH).await.json(200), json!([displayed]));
    let stranger = server.stranger().await;
    assert_eq!(stranger.get(&one).await.status, 404);
    assert_eq!(stranger.delete(&one).await.status, 404);
    assert_eq!(reader.delete(&one).await.status, 204);
    assert_eq!(reader.get(&one).await.status, 404);
    let entries = server.admin().await.get("/api/v1/audit").await.json(200);
    let actions: Vec<&str> = entries
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|entry| entry["action"].as_str())
        .filter(|action| action.starts_with("sql_login"))
        .collect();
    assert_eq!(actions, ["sql_login.revoked", "sql_login.created"]);
}

#[tokio::test]
async fn a_login_is_refused_in_words() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    let past = json!({"name": "psql", "expires_at": "2001-01-01T00:00:00Z"});
    assert_eq!(
        admin.post(PATH, &past).await.json(400)["code"],
        "invalid_expiry"
    );
    let columns = json!([{"name": "words", "data_type": "string"}]);
    let put = admin.request(Method::PUT, "/api/v1/tables/notes");
    let table = json!({"semantic_category": "curated", "columns": columns});
    send(put.json(&table)).await.json(200);
    let key = json!({"name": "narrow", "scopes": ["read"], "tables": ["notes"]});
    let key = admin.post("/api/v1/api-keys", &key).await.json(200);
    let narrowed = server.with_key(key["key"].as_str().unwrap());
    let named = json!({"name": "psql"});
    assert_eq!(
        narrowed.post(PATH, &named).await.json(403)["code"],
        "key_narrowed"
    );
}

#[tokio::test]
async fn a_server_without_an_address_or_agreement_makes_no_login() {
    let clock = Arc::new(FixedClock::default());
    let services = in_memory(clock.clone());
    for (sql, code) in [
        (SqlAccess::default(), "sql_logins_off"),
        (
            SqlAccess {
                is_shared: false,
                ..services.sql.clone()
            },
            "sql_not_shared",
        ),
    ] {
        let services = Services {
            sql,
            ..in_memory(clock.clone())
        };
        let server = TestServer::start_on(services, Arc::clone(&clock)).await;
        // A second organization.
        server.stranger().await;
        let admin = server.admin().await;
        let refused = admin.post(PATH, &json!({"name": "psql"})).await.json(400);
        assert_eq!(refused["code"], code);
        // A client knows it before it asks.
        assert_eq!(missing(&admin).await, [refused["detail"].clone()]);
    }
    let server = TestServer::start().await;
    assert_eq!(missing(&server.admin().await).await, Vec::<Value>::new());
}

/// Reasons for which the server makes no SQL logins.
async fn missing(client: &Client) -> Vec<Value> {
    let me = client.get("/api/v1/me").await.json(200);
    let features = me["missing_features"].as_array().unwrap().iter();
    let of = features.filter(|it| it["feature"] == "sql_logins");
    of.map(|it| it["detail"].clone()).collect()
}

/// A program that serves SQL logins, with a table and a login.
struct Served {
    program: Program,
    login: Value,
    http: reqwest::Client,
    directory: tempfile::TempDir,
}

impl Served {
    async fn start(environment: &[(&str, &str)]) -> Self {
        let directory = directory();
        let program = Program::serve(directory.path(), environment);
        let mut served = Self {
            program,
            login: Value::Null,
            http: reqwest::Client::new(),
            directory,
        };
        let columns = json!([
            {"name": "name", "data_type": "string", "description": "As on the tube"},
            {"name": "volume", "data_type": "float", "unit": "mL"},
        ]);
        let table = json!({"semantic_category": "curated", "columns": columns});
        served.call(Method::PUT, "tables/sample", &table).await;
        let rows = json!({"job_name": "Import", "tables": [
            {"table": "sample", "mode": "insert", "rows": [{"name": "A1", "volume": 1.5}]},
        ]});
        served.call(Method::POST, "data/write", &rows).await;
        served.login = served.make().await;
        served
    }

    async fn call(&self, method: Method, path: &str, body: &Value) -> Value {
        let url = format!("{}/api/v1/{path}", self.program.url);
        let request = self
            .http
            .request(method, url)
            .bearer_auth(self.program.key.as_ref().unwrap());
        let response = request.json(body).send().await.unwrap();
        assert!(
            response.status().is_success(),
            "{}",
            response.text().await.unwrap()
        );
        response.json().await.unwrap_or_default()
    }

    async fn make(&self) -> Value {
        self.call(Method::POST, "sql-logins", &json!({"name": "psql"}))
            .await
    }

    fn dsn(&self) -> &str {
        self.login["dsn"].as_str().unwrap()
    }

    /// The outcome of psql with that URL.
    fn psql(&self, dsn: &str, command: &str) -> Output {
        // Where the program has put the server, if it had to download one.
        let cache = self.directory.path().join(".labdata/cache");
        let mut psql = Command::new(postgresql_programs(&cache).join("psql"));
        psql.args([
            "--no-psqlrc",
            "-At",
            "-v",
            "ON_ERROR_STOP=1",
            "-d",
            dsn,
            "-c",
            command,
        ]);
        run(&mut psql)
    }
}

#[tokio::test]
async fn psql_reads_tables_as_they_are_described() {
    let served = Served::start(&[("LABDATA_SQL_BIND", "127.0.0.1:0")]).await;
    let read = served.psql(served.dsn(), "SELECT name, volume FROM sample");
    assert!(read.status.success(), "{}", text(&read.stderr));
    assert_eq!(text(&read.stdout), "A1|1.5\n");
    for (command, expected) in [
        (r"\dt", "sample"),
        (r"\d+ sample", "As on the tube"),
        (r"\d+ sample", "[mL]"),
        (r"\di", "sample_pkey"),
        (r"\dn", "org_"),
        (r"\l", "labdata"),
    ] {
        let listed = served.psql(served.dsn(), command);
        let (out, error) = (text(&listed.stdout), text(&listed.stderr));
        assert!(
            listed.status.success() && out.contains(expected),
            "{command}: {out}{error}"
        );
    }
}

#[tokio::test]
async fn only_logins_get_in_and_only_with_their_password() {
    let served = Served::start(&[("LABDATA_SQL_BIND", "127.0.0.1:0")]).await;
    let (user, password) = (
        served.login["user"].as_str().unwrap(),
        served.login["password"].as_str().unwrap(),
    );
    for (from, to) in [
        (user, "labdata"),
        (user, "postgres"),
        (password, "wrong"),
        ("/labdata?", "/postgres?"),
        ("/labdata?", "/template1?"),
    ] {
        let dsn = served.dsn().replace(from, to);
        assert_ne!(dsn, served.dsn());
        let refused = served.psql(&dsn, "SELECT 1");
        assert!(!refused.status.success(), "{dsn}");
    }
    let replication = format!("{}&replication=database", served.dsn());
    let refused = served.psql(&replication, "IDENTIFY_SYSTEM");
    assert!(text(&refused.stderr).contains("do not replicate"));
}

#[tokio::test]
async fn notifications_of_the_platform_do_not_reach_a_listener() {
    let served = Served::start(&[("LABDATA_SQL_BIND", "127.0.0.1:0")]).await;
    let listen = "LISTEN labdata_event_log; LISTEN mine; NOTIFY mine, 'heard'; SELECT 1";
    let listened = served.psql(served.dsn(), listen);
    assert!(listened.status.success(), "{}", text(&listened.stderr));
    // psql prints notifications that arrive with a command's end.
    assert!(
        !text(&listened.stdout).contains("heard"),
        "{}",
        text(&listened.stdout)
    );
}

/// Asks until the session is ended. A session that never ends hangs, and the test with it.
async fn until_ended(session: &tokio_postgres::Client) {
    while session.simple_query("SELECT 1").await.is_ok() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn sessions_end_with_their_login_and_with_their_user() {
    let served = Served::start(&[("LABDATA_SQL_BIND", "127.0.0.1:0")]).await;
    let open = async |login: &Value| {
        let (session, connection) = tokio_postgres::connect(login["dsn"].as_str().unwrap(), NoTls)
            .await
            .unwrap();
        tokio::spawn(connection);
        session
    };
    let session = open(&served.login).await;
    let one = format!("sql-logins/{}", served.login["id"].as_str().unwrap());
    served.call(Method::DELETE, &one, &Value::Null).await;
    until_ended(&session).await;
    assert!(!served.psql(served.dsn(), "SELECT 1").status.success());

    let now = SystemClock.now();
    let soon = (now + time::Duration::seconds(2)).unix_timestamp();
    let soon = time::OffsetDateTime::from_unix_timestamp(soon).unwrap();
    let soon = soon
        .format(&time::format_description::well_known::Rfc3339)
        .unwrap();
    let body = json!({"name": "short", "expires_at": soon});
    let short = served.call(Method::POST, "sql-logins", &body).await;
    let session = open(&short).await;
    until_ended(&session).await;
    let one = format!("sql-logins/{}", short["id"].as_str().unwrap());
    let ended = served.call(Method::GET, &one, &Value::Null).await;
    assert_eq!(ended["end_reason"], "expired");
}

#[tokio::test]
async fn other_machines_need_tls() {
    let certificates =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../adapters/postgres/tests/it/certificates");
    let file = |name: &str| certificates.join(name).display().to_string();
    let served = Served::start(&[
        ("LABDATA_SQL_BIND", "0.0.0.0:0"),
        ("LABDATA_SQL_CERTIFICATE", &file("server.pem")),
        ("LABDATA_SQL_KEY", &file("server.key")),
    ])
    .await;
    let read = served.psql(served.dsn(), "SELECT ssl FROM (SELECT true) t (ssl)");
    if text(&read.stderr).contains("SSL support is not compiled in") {
        not_tested("psql has no TLS here");
        return;
    }
    assert!(read.status.success(), "{}", text(&read.stderr));
    let plain = served.dsn().replace("sslmode=require", "sslmode=disable");
    let refused = served.psql(&plain, "SELECT 1");
    assert!(text(&refused.stderr).contains("requires TLS"));
    let verified = served.dsn().replace("127.0.0.1", "localhost").replace(
        "sslmode=require",
        &format!("sslmode=verify-full&sslrootcert={}", file("authority.pem")),
    );
    let read = served.psql(&verified, "SELECT name FROM sample");
    assert_eq!(text(&read.stdout), "A1\n", "{}", text(&read.stderr));
}
