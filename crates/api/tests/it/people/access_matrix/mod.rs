//! Hidden tables against every way in which a table can be seen or written: each operation, each tool, and SQL.
//!
//! Every record of the hidden tables has [`MARK`] in its names and values. To who may not see them, no response has
//! the mark in it, and a response about a hidden table is the one about a table that does not exist.

mod datasets;
mod operations;
mod queries;
mod tools;
mod visible;
mod ways;

use labdata_domain::people::scope::Scope;
use labdata_postgres::DatabaseSettings;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use super::rights_matrix::{Records, UNKNOWN};
use crate::{
    on_postgres::{OnPostgres, WRITE},
    server::{Client, Reply, send},
};

/// In the names and values of what is hidden.
const MARK: &str = "hush";

/// The hidden table of rows, and a name of the same length that no table has.
const HIDDEN: &str = "hush_rows";
const NOTHING: &str = "none_rows";

/// The hidden series, and a name that no table has.
const HIDDEN_POINTS: &str = "hush_points";
const NO_POINTS: &str = "none_points";

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
    /// Id of a dataset of hidden rows.
    dataset: String,
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
        let columns = json!([column("hush_name"), column("plain"), column("hush_old")]);
        let definition =
            json!({"semantic_category": "curated", "columns": columns, "access": access});
        on.define(HIDDEN, definition).await;
        let columns = json!([
            {"name": "hush_owner", "data_type": "string", "references": HIDDEN},
            {"name": "hush_value", "data_type": "float"},
        ]);
        let definition = json!({"semantic_category": "raw", "columns": columns, "access": access});
        on.define(HIDDEN_POINTS, definition).await;
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
        // In the trash.
        let column = format!("/api/v1/tables/{HIDDEN}/columns/hush_old?force=true");
        assert_eq!(on.client.delete(&column).await.status, 204);
        let dataset =
            json!({"name": "hush set", "query": format!("select hush_name from {HIDDEN}")});
        let dataset = on.client.post("/api/v1/datasets", &dataset).await.json(200);
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
            dataset: dataset["id"].as_str().unwrap().to_owned(),
            inside,
            viewer_inside,
            reader,
            outsiders,
        }
    }

    /// Records that a call names: the hidden table, or one that does not exist.
    fn records(&self, table: &str, row: &str) -> Records {
        let dataset = if table == HIDDEN {
            self.dataset.as_str()
        } else {
            UNKNOWN
        };
        [
            ("dataset_id", dataset),
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
    let narrowed = json!({"name": "n", "scopes": Scope::ALL, "tables": ["sample"]});
    let narrowed = on
        .client
        .post("/api/v1/api-keys", &narrowed)
        .await
        .json(200);
    let narrowed = on.server.with_key(narrowed["key"].as_str().unwrap());
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
    fn request(&self, method: &str, path: &str) -> RequestBuilder {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let request = self.client.request(method, path);
        match &self.cookie {
            Some(cookie) => request
                .header("cookie", cookie)
                .header("sec-fetch-site", "same-origin"),
            None => request,
        }
    }

    async fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Reply {
        let mut request = self.request(method, path);
        if let Some(body) = body {
            request = request.json(body);
        }
        send(request).await
    }
}

/// The difference between responses about a hidden table and about none, or the mark; `None` if there is neither.
fn leak(hidden: &str, nothing: &str) -> Option<String> {
    // What the caller has sent may come back.
    let sent = hidden
        .replace(HIDDEN, NOTHING)
        .replace(HIDDEN_POINTS, NO_POINTS);
    let without_columns = |text: &str| text.replace("hush_name", "…").replace("hush_value", "…");
    let (known, expected) = (without_columns(&sent), without_columns(nothing));
    let is_alike = without_ids(&known) == without_ids(&expected);
    (known.contains(MARK) || !is_alike).then(|| {
        let start = |text: &str| text.chars().take(300).collect::<String>();
        format!("{} | not {}", start(&known), start(&expected))
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
