//! Hidden tables against every way in which a table can be seen or written: each operation, each tool, and SQL.
//!
//! Every record of the hidden tables has [`MARK`] in its names and values. To who may not see them, no answer has
//! the mark in it, and an answer about a hidden table is the one about a table that does not exist.

use labdata_api::routes::openapi;
use labdata_application::{
    events::follow_events::follow_events, people::authenticate::authenticate,
};
use labdata_domain::{events::EventPosition, people::scope::Scope};
use labdata_operations::Access;
use labdata_postgres::DatabaseSettings;
use reqwest::Method;
use serde_json::{Value, json};

use super::rights_matrix::{Records, UNKNOWN, arguments, call_tool, example, naming, path_of};
use crate::{
    mcp::lab::ask,
    on_postgres::{OnPostgres, WRITE},
    server::{Client, Reply, send},
};

/// In the names and values of what is hidden.
const MARK: &str = "hush";

/// The hidden table of rows, and a name of the same length that no table has.
const HIDDEN: &str = "hush_rows";
const NOTHING: &str = "none_rows";

/// Caller to whom the tables are hidden.
struct Outsider {
    name: &'static str,
    client: Client,
    cookie: Option<String>,
}

struct Lab {
    on: OnPostgres,
    /// Execution that wrote the hidden rows.
    execution: String,
    /// Id of a hidden row.
    row: String,
    inside: Client,
    viewer_inside: Client,
    reader: Client,
    outsiders: Vec<Outsider>,
}

async fn user(on: &OnPostgres, name: &str, role: &str) -> String {
    let body = json!({"email": format!("{name}@example.org"), "role": role});
    let user = on.client.post("/api/v1/users", &body).await.json(200);
    user["id"].as_str().unwrap().to_owned()
}

impl Lab {
    async fn start() -> Self {
        let on = OnPostgres::with_tables(DatabaseSettings::default()).await;
        let users = [
            user(&on, "inside", "member").await,
            user(&on, "viewer", "viewer").await,
            user(&on, "reader", "member").await,
            user(&on, "outside", "member").await,
        ];
        let [inside, viewer, reader, outside] = &users;
        for (name, members) in [
            ("few", json!([inside, viewer])),
            ("readers", json!([reader])),
        ] {
            let group = json!({"name": name, "members": members});
            on.client.post("/api/v1/groups", &group).await.json(200);
        }
        let access = json!({"read": ["readers"], "write": ["few"]});
        let column = |name: &str| json!({"name": name, "data_type": "string"});
        let columns = json!([column("hush_name"), column("plain")]);
        let definition =
            json!({"semantic_category": "curated", "columns": columns, "access": access});
        on.define(HIDDEN, definition).await;
        let columns = json!([
            {"name": "hush_owner", "data_type": "string", "references": HIDDEN},
            {"name": "hush_value", "data_type": "float"},
        ]);
        let definition = json!({"semantic_category": "raw", "columns": columns, "access": access});
        on.define("hush_points", definition).await;
        let columns = json!([{"name": "owner", "data_type": "string", "references": HIDDEN}]);
        on.define(
            "open_link",
            json!({"semantic_category": "curated", "columns": columns}),
        )
        .await;
        let rows = json!({
            "tables": [{"table": HIDDEN, "rows": [{"hush_name": "hush 1", "plain": "hush 2"}]}],
            "return_rows": true,
        });
        let written = on.client.post(WRITE, &rows).await.json(200);
        let row = written["tables"][0]["rows"][0]["id"]
            .as_str()
            .unwrap()
            .to_owned();
        let series = json!({"series": [{"table": "hush_points", "parent": row, "columns": {"hush_value": [1.5]}}]});
        on.client.post(WRITE, &series).await.json(200);
        let clients = {
            let mut clients = Vec::new();
            for id in &users {
                let user = id.parse().unwrap();
                let key = on.server.key(&Scope::ALL, |key| key.user = user).await;
                clients.push(on.server.with_key(&key));
            }
            clients
        };
        let [inside, viewer_inside, reader, outsider] =
            <[Client; 4]>::try_from(clients).ok().unwrap();
        let outsiders = outsiders(&on, outside, outsider).await;
        Self {
            execution: written["job_execution_id"].as_str().unwrap().to_owned(),
            on,
            row,
            inside,
            viewer_inside,
            reader,
            outsiders,
        }
    }

    /// Records that a call names: the hidden table, or one that does not exist.
    fn records(&self, table: &str, row: &str) -> Records {
        [
            ("name", table),
            ("table", table),
            ("target_name", table),
            ("table_name", table),
            ("row_id", row),
            ("column", "hush_name"),
            ("execution_id", self.execution.as_str()),
            ("job_execution_id", self.execution.as_str()),
            ("version_number", "1"),
            ("version", "1"),
        ]
        .into_iter()
        .map(|(name, value)| (name, value.to_owned()))
        .collect()
    }
}

/// Callers of each kind to whom the tables are hidden.
async fn outsiders(on: &OnPostgres, user: &str, member: Client) -> Vec<Outsider> {
    let user = user.parse().unwrap();
    let key = on.server.key(&Scope::ALL, |key| key.user = user).await;
    let browser = on.server.anonymous();
    let signed_in = browser
        .post("/api/v1/session", &json!({"api_key": key}))
        .await;
    let cookie = signed_in.header("set-cookie").unwrap();
    let cookie = cookie.split(';').next().map(str::to_owned);
    let opened = member
        .post("/api/v1/job-executions", &json!({}))
        .await
        .json(200);
    let run = opened["job_execution_id"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    let scopes = [Scope::Read, Scope::Write];
    let of_run = on.server.key(&scopes, |key| {
        key.user = user;
        key.execution = Some(run);
    });
    let of_run = on.server.with_key(&of_run.await);
    let narrowed = on.server.key(&Scope::ALL, |key| {
        key.tables = Some(vec!["sample".to_owned()]);
    });
    let narrowed = on.server.with_key(&narrowed.await);
    let of = |name, client, cookie| Outsider {
        name,
        client,
        cookie,
    };
    vec![
        of("a member outside", member, None),
        of("a session", browser, cookie),
        of("a run", of_run, None),
        of("a narrowed key", narrowed, None),
        of("a stranger", on.server.stranger().await, None),
    ]
}

impl Outsider {
    async fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Reply {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let mut request = self.client.request(method, path);
        if let Some(body) = body {
            request = request.json(body);
        }
        if let Some(cookie) = &self.cookie {
            let request_of_page = request.header("cookie", cookie);
            request = request_of_page.header("sec-fetch-site", "same-origin");
        }
        send(request).await
    }
}

/// Whether answers about a hidden table and about none are the same, and neither tells the mark.
fn leak(hidden: &str, nothing: &str) -> Option<String> {
    // What the caller has sent may come back.
    let told = hidden.replace(HIDDEN, NOTHING).replace("hush_name", "…");
    let expected = nothing.replace("hush_name", "…");
    let is_alike = without_ids(&told) == without_ids(&expected);
    (told.contains(MARK) || !is_alike).then(|| {
        let start = |text: &str| text.chars().take(300).collect::<String>();
        format!("{} | not {}", start(&told), start(&expected))
    })
}

/// A text without what differs from call to call.
fn without_ids(text: &str) -> String {
    let mut kept = String::new();
    let is_of_id = |c: char| c.is_ascii_hexdigit() || c == '-';
    let mut rest = text;
    while let Some(at) = rest.find(is_of_id) {
        let (before, from) = rest.split_at(at);
        let end = from.find(|c| !is_of_id(c)).unwrap_or(from.len());
        let (word, after) = from.split_at(end);
        kept.push_str(before);
        kept.push_str(if word.len() == 36 { "…" } else { word });
        rest = after;
    }
    kept + rest
}

/// Operations that are left out: those of sessions would end that of the caller, and the log of what was done is the
/// administrators', whose keys may be narrowed.
const LEFT_OUT: &[&str] = &["begin_session", "end_session", "list_audit_log"];

#[tokio::test]
async fn no_operation_tells_of_a_hidden_table() {
    let document = openapi();
    let lab = Lab::start().await;
    let (hidden, nothing) = (lab.records(HIDDEN, &lab.row), lab.records(NOTHING, UNKNOWN));
    let mut leaks = Vec::new();
    for operation in labdata_operations::all() {
        let about = &operation.about;
        if LEFT_OUT.contains(&about.name) || operation.access == Access::Open {
            continue;
        }
        let example = example(&document, about.name);
        let request = |records: &Records| {
            let body = example.as_ref().map(|example| naming(example, records));
            (path_of(&operation, records), body)
        };
        for outsider in &lab.outsiders {
            // A stranger would define the table in another organization.
            if outsider.name == "a stranger" && about.name == "define_table" {
                continue;
            }
            let ask = async |(path, body): &(String, Option<Value>)| {
                let method = about.method.as_str();
                outsider.send(method, path, body.as_ref()).await
            };
            let (about_hidden, about_nothing) = (request(&hidden), request(&nothing));
            let found = ask(&about_hidden).await;
            let leak = if about_hidden == about_nothing {
                found.text.contains(MARK).then(|| found.text.clone())
            } else {
                let missing = ask(&about_nothing).await;
                let is_alike = found.status == missing.status;
                let differs = || Some(format!("not {}", missing.status));
                leak(&found.text, &missing.text).or_else(|| (!is_alike).then(differs).flatten())
            };
            if let Some(leak) = leak {
                leaks.push(format!(
                    "{} by {}: {} {leak}",
                    about.name, outsider.name, found.status
                ));
            }
        }
    }
    assert!(leaks.is_empty(), "{}", leaks.join("\n"));
}

#[tokio::test]
async fn no_tool_tells_of_a_hidden_table() {
    let document = openapi();
    let lab = Lab::start().await;
    let (hidden, nothing) = (lab.records(HIDDEN, &lab.row), lab.records(NOTHING, UNKNOWN));
    let tools =
        ask(&lab.on.client, "tools/list", json!({})).await.json(200)["result"]["tools"].take();
    let mut leaks = Vec::new();
    for tool in tools.as_array().unwrap() {
        let about_hidden = arguments(&document, tool, &hidden);
        let about_nothing = arguments(&document, tool, &nothing);
        for outsider in lab.outsiders.iter().filter(|it| it.cookie.is_none()) {
            let ask =
                async |about: &Value| call_tool(&outsider.client, tool, about.clone()).await.0;
            let found = ask(&about_hidden).await;
            let leak = if about_hidden == about_nothing {
                found.contains(MARK).then_some(found)
            } else {
                leak(&found, &ask(&about_nothing).await)
            };
            if let Some(leak) = leak {
                leaks.push(format!("{} by {}: {leak}", tool["name"], outsider.name));
            }
        }
    }
    for outsider in lab.outsiders.iter().filter(|it| it.cookie.is_none()) {
        let listed = ask(&outsider.client, "resources/list", json!({}))
            .await
            .json(200);
        let uri = json!({"uri": format!("labdata://tables/{HIDDEN}")});
        let read = ask(&outsider.client, "resources/read", uri).await.text;
        for text in [listed.to_string(), read.replace(HIDDEN, "")] {
            if text.contains(MARK) {
                leaks.push(format!("resources by {}: {text}", outsider.name));
            }
        }
    }
    assert!(leaks.is_empty(), "{}", leaks.join("\n"));
}

/// Queries about a hidden table, `{}`, by every path that the screen lets pass or not.
const QUERIES: &[&str] = &[
    "select * from {}",
    "select count(*) from {}",
    "select plain from {}",
    "select nothing from {}",
    "select {}.nothing from {}",
    "select plain + 1 from {}",
    "select * from only {}",
    "select (select max(plain) from {})",
    "with t as (select * from {}) select * from t",
    "select * from sample s left join {} h on h.id = s.id",
    "select * from sample where id in (select id from {})",
    "select row_to_json(h) from {} h",
    "select * from \"{}\"",
    "select '{}'::regclass",
    "select to_regclass('{}') is null as missing",
    "select has_table_privilege('{}', 'select') as may",
    "select * from information_schema.tables where table_name = '{}'",
    "select * from information_schema.columns where table_name = '{}'",
    "select relname from pg_class where relname = '{}'",
    "select \"table\".name from \"table\" where name = '{}'",
    "select query_to_xml('select * from {}', true, true, '')",
    "table {}",
];

#[tokio::test]
async fn no_query_reads_or_tells_of_a_hidden_table() {
    let lab = Lab::start().await;
    let schema = format!("org_{}", lab.on.server.organization.as_uuid().simple());
    let qualified = QUERIES
        .iter()
        .map(|it| it.replace("from {}", &format!("from {schema}.{{}}")));
    let queries: Vec<String> = QUERIES
        .iter()
        .map(|it| (*it).to_owned())
        .chain(qualified)
        .collect();
    let mut leaks = Vec::new();
    for outsider in &lab.outsiders {
        for query in &queries {
            let ask = async |table: &str| {
                let body = json!({"query": query.replace("{}", table)});
                outsider
                    .send("POST", "/api/v1/tools/query", Some(&body))
                    .await
            };
            let (found, missing) = (ask(HIDDEN).await, ask(NOTHING).await);
            let leak = leak(&found.text, &missing.text);
            if leak.is_some() || found.status != missing.status {
                leaks.push(format!(
                    "{query} by {}: {} {leak:?}",
                    outsider.name, found.status
                ));
            }
            let dataset = json!({"name": "d", "query": query.replace("{}", HIDDEN)});
            let made = outsider
                .send("POST", "/api/v1/datasets", Some(&dataset))
                .await;
            if made.status.is_success() && !query.contains("missing") && !query.contains("'{}'") {
                leaks.push(format!(
                    "a dataset of {query} by {}: {}",
                    outsider.name, made.text
                ));
            }
        }
        let all = json!({"query": "select name from \"table\""});
        let listed = outsider
            .send("POST", "/api/v1/tools/query", Some(&all))
            .await;
        if listed.text.contains(MARK) {
            leaks.push(format!(
                "the list of tables by {}: {}",
                outsider.name, listed.text
            ));
        }
    }
    assert!(leaks.is_empty(), "{}", leaks.join("\n"));
}

/// What is not hidden is read as ever, and those who may see the tables do.
#[tokio::test]
async fn who_may_read_and_write_does() {
    let lab = Lab::start().await;
    let query = |sql: &str| json!({"query": sql});
    let count = async |client: &Client, table: &str| {
        let body = query(&format!("select count(*) as n from {table}"));
        client.post("/api/v1/tools/query", &body).await
    };
    let outside = &lab.outsiders[0].client;
    for table in [
        "sample",
        "measurement",
        "curve",
        "open_link",
        "experiment",
        "job",
    ] {
        assert_eq!(count(outside, table).await.status, 200, "{table}");
    }
    for client in [&lab.inside, &lab.viewer_inside, &lab.reader, &lab.on.client] {
        for table in [HIDDEN, "hush_points"] {
            let read = count(client, table).await.json(200);
            assert_eq!(read["data"], json!([[1]]), "{table}");
        }
    }
    let row = json!({"tables": [{"table": HIDDEN, "rows": [{"plain": "x"}]}]});
    lab.inside.post(WRITE, &row).await.json(200);
    assert_eq!(
        lab.reader.post(WRITE, &row).await.code(403),
        "table_read_only"
    );
    assert_eq!(
        lab.viewer_inside.post(WRITE, &row).await.code(403),
        "scope_missing"
    );
    let revert = format!("/api/v1/job-executions/{}/revert", lab.execution);
    for client in [&lab.reader, outside] {
        assert_eq!(
            client.post(&revert, &Value::Null).await.code(403),
            "table_read_only"
        );
    }
    // The reference of an open table tells no name.
    let schema = outside.get("/api/v1/tools/schema").await.json(200);
    let table = schema
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["name"] == "open_link")
        .unwrap();
    let column = table["columns"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["name"] == "owner")
        .unwrap();
    assert_eq!(column["foreign_key_table_name"], Value::Null);
    assert_eq!(
        (&column["is_foreign_key"], &column["sql_column_name"]),
        (&json!(true), &json!("owner_id"))
    );
    for owner in [json!(lab.row), json!({"plain": "hush 2"})] {
        let row = json!({"tables": [{"table": "open_link", "rows": [{"owner": owner}]}]});
        let refused = outside.post(WRITE, &row).await;
        assert_eq!(refused.status, 400, "{}", refused.text);
        assert!(!refused.text.contains(HIDDEN), "{}", refused.text);
    }
    let row = json!({"tables": [{"table": "open_link", "rows": [{"owner": lab.row}]}]});
    lab.inside.post(WRITE, &row).await.json(200);
}

/// SQL follows tables that change, become hidden, and are opened, on two servers.
#[tokio::test]
async fn queries_follow_the_rights_of_the_moment_on_every_server() {
    let lab = Lab::start().await;
    let replica = lab.on.server.replica().await;
    let outside = &lab.outsiders[0].client;
    let (_, authorization) = outside.as_others_need_it();
    let there = replica.anonymous().authorized(&authorization);
    let ask = async |client: &Client, sql: &str| {
        let reply = client
            .post("/api/v1/tools/query", &json!({"query": sql}))
            .await;
        reply.status.as_u16()
    };
    for client in [outside, &there] {
        assert_eq!(ask(client, "select volume from sample").await, 200);
        assert_eq!(ask(client, &format!("select * from {HIDDEN}")).await, 400);
    }
    let columns = |extra: &str| {
        json!([
            {"name": "name", "data_type": "string", "is_nullable": false, "is_unique": true},
            {"name": "volume", "data_type": "float"},
            {"name": "note", "data_type": "text"},
            {"name": "parent", "data_type": "string", "references": "sample"},
            {"name": extra, "data_type": "float"},
        ])
    };
    lab.on
        .define(
            "sample",
            json!({"semantic_category": "curated", "columns": columns("depth")}),
        )
        .await;
    let renamed = json!({
        "semantic_category": "curated", "renamed_from": "measurement",
        "columns": [
            {"name": "sample", "data_type": "string", "references": "sample"},
            {"name": "value", "data_type": "float"},
        ],
    });
    lab.on.define("reading", renamed).await;
    lab.on
        .client
        .delete("/api/v1/tables/sample/columns/depth?force=true")
        .await;
    lab.on
        .client
        .delete("/api/v1/tables/curve?force=true")
        .await;
    for client in [outside, &there] {
        assert_eq!(ask(client, "select volume from sample").await, 200);
        assert_eq!(ask(client, "select depth from sample").await, 400);
        assert_eq!(ask(client, "select * from reading").await, 200);
        assert_eq!(ask(client, "select * from measurement").await, 400);
        assert_eq!(ask(client, "select * from curve").await, 400);
    }
    let access = json!({"read": ["few"], "write": ["few"]});
    let columns = json!([
        {"name": "sample", "data_type": "string", "references": "sample"},
        {"name": "value", "data_type": "float"},
    ]);
    let mut definition =
        json!({"semantic_category": "curated", "columns": columns, "access": access});
    lab.on.define("reading", definition.clone()).await;
    for client in [outside, &there] {
        assert_eq!(ask(client, "select * from reading").await, 400);
        assert_eq!(ask(client, "select * from sample").await, 200);
    }
    definition["access"] = json!({});
    lab.on.define("reading", definition).await;
    for client in [outside, &there] {
        assert_eq!(ask(client, "select * from reading").await, 200);
    }
}

/// Events of hidden tables reach only who may see them.
#[tokio::test]
async fn events_of_hidden_tables_are_left_out() {
    let lab = Lab::start().await;
    let services = &lab.on.server.services;
    // The last event: who has read it has read all.
    let last = json!({"tables": [{"table": "sample", "rows": [{"name": "last"}]}]});
    lab.on.client.post(WRITE, &last).await.json(200);
    let mut told = Vec::new();
    for client in [&lab.on.client, &lab.inside, &lab.outsiders[0].client] {
        let (_, authorization) = client.as_others_need_it();
        let key = authorization.trim_start_matches("Bearer ").to_owned();
        let actor = authenticate(services, &key).await.unwrap();
        let start = Some(EventPosition::START);
        let (mut follower, _) = follow_events(services, &actor, start).await.unwrap();
        let (mut hidden, mut is_over) = (0, false);
        while !is_over {
            let batch = follower.next(services, &actor).await.unwrap();
            for event in &batch.events {
                let table = event.kind.table().unwrap_or_default();
                hidden += usize::from(table.starts_with(MARK));
                is_over |= table == "sample" && event.kind.as_str() == "data.written";
            }
        }
        told.push(hidden);
    }
    assert_eq!(told, [4, 4, 0]);
}
