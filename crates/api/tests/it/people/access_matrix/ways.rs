//! Ways in which a table is seen or written, and what each kind of caller gets by each.

use std::collections::BTreeSet;

use labdata_api::routes::openapi;
use labdata_domain::people::{
    rights::TableRight,
    role::Role,
    scope::{Scope, Scopes},
};
use reqwest::{Method, RequestBuilder};
use serde_json::Value;

use super::{HIDDEN, HIDDEN_POINTS, Lab, MARK, NO_POINTS, NOTHING, leak};
use crate::{
    people::rights_matrix::UNKNOWN,
    server::{Client, send},
};

/// Body of a request.
enum Body {
    None,
    Json(&'static str),
    /// A table in a file.
    File(&'static str),
}

/// A way to see or write a table. In path and body `$T` stands for the table of rows, `$P` for its series, `$R` for a
/// row and `$E` for the execution that wrote it.
struct Way {
    operation: &'static str,
    method: &'static str,
    path: &'static str,
    body: Body,
    scope: Scope,
    writes: bool,
}

const fn reads(operation: &'static str, path: &'static str) -> Way {
    Way {
        operation,
        method: "GET",
        path,
        body: Body::None,
        scope: Scope::Read,
        writes: false,
    }
}

impl Way {
    const fn posts(mut self, body: &'static str) -> Self {
        (self.method, self.body) = ("POST", Body::Json(body));
        self
    }

    const fn sends(mut self, file: &'static str) -> Self {
        (self.method, self.body) = ("POST", Body::File(file));
        self
    }

    const fn needs(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    const fn writes(mut self) -> Self {
        self.writes = true;
        self.scope = Scope::Write;
        self
    }

    const fn deletes(mut self) -> Self {
        self.method = "DELETE";
        self.writes = true;
        self.scope = Scope::Admin;
        self
    }
}

/// Every way, those that delete last.
const WAYS: &[Way] = &[
    reads("get_schema", "/api/v1/tools/schema"),
    reads("read_rows", "/api/v1/tools/read")
        .posts(r#"{"target_type": "table", "target_name": "$T"}"#),
    reads("read_rows", "/api/v1/tools/read")
        .posts(r#"{"target_type": "table", "target_name": "$T", "as_of": "2026-01-01T00:00:00Z"}"#),
    reads("export_table", "/api/v1/tables/$T/export"),
    reads(
        "export_table",
        "/api/v1/tables/$P/export?as_of=2026-01-01T00:00:00Z",
    ),
    reads("read_series", "/api/v1/tools/series/$P?parent=$R"),
    reads("read_many_series", "/api/v1/tools/series")
        .posts(r#"{"table": "$P", "parents": ["$R"]}"#),
    reads("query_data", "/api/v1/tools/query").posts(r#"{"query": "select * from $T"}"#),
    reads("query_data", "/api/v1/tools/query").posts(r#"{"query": "select count(*) from $P"}"#),
    reads("get_table_access", "/api/v1/tables/$T/access"),
    reads("get_row_history", "/api/v1/tables/$T/rows/$R/history"),
    reads(
        "get_job_execution_changes",
        "/api/v1/job-executions/$E/changes",
    ),
    reads("list_changed_rows", "/api/v1/job-executions/$E/changes/$T"),
    reads("list_trash", "/api/v1/trash"),
    reads("create_dataset", "/api/v1/datasets")
        .posts(r#"{"name": "copy", "query": "select plain from $T"}"#)
        .needs(Scope::Write),
    reads("create_webhook", "/api/v1/webhooks")
        .posts(r#"{"url": "https://lab.example", "events": ["*"], "filters": {"table": "$T"}}"#)
        .needs(Scope::Admin),
    reads("write_data", "/api/v1/data/write")
        .posts(r#"{"tables": [{"table": "$T", "rows": [{"plain": "x"}]}]}"#)
        .writes(),
    reads("write_data", "/api/v1/data/write")
        .posts(r#"{"series": [{"table": "$P", "parent": "$R", "columns": {"hush_value": [2.5]}}]}"#)
        .writes(),
    reads("import_table", "/api/v1/tables/$T/import")
        .sends("plain\r\nx\r\n")
        .writes(),
    reads("restore_row", "/api/v1/tables/$T/rows/$R/restore")
        .posts(r#"{"version": 1}"#)
        .writes(),
    reads("revert_job_execution", "/api/v1/job-executions/$E/revert")
        .posts(r#"{"dry_run": true}"#)
        .writes(),
    reads("forget_row_history", "/api/v1/tables/$T/rows/$R/history").deletes(),
    reads("drop_column", "/api/v1/tables/$T/columns/plain?force=true").deletes(),
    reads("drop_table", "/api/v1/tables/$P?force=true").deletes(),
];

/// Operations that name tables and are no way to see or write one that is hidden, with the reason or the test.
const ELSEWHERE: &[(&str, &str)] = &[
    ("begin_session", "names the tables of the caller's own key"),
    (
        "create_api_key",
        "groups::a_narrowed_key_concerns_its_tables_only",
    ),
    (
        "define_table",
        "operations: to who may not define tables, 403; else the name is taken",
    ),
    (
        "follow_events",
        "visible::events_of_hidden_tables_are_left_out",
    ),
    (
        "get_dataset",
        "datasets::a_dataset_of_a_hidden_table_does_not_exist",
    ),
    ("get_me", "names the tables of the caller's own key"),
    ("get_session", "names the tables of the caller's own key"),
    ("get_webhook", "groups::a_narrowed_key_manages_no_webhooks"),
    ("list_api_keys", "for administrators, who see every table"),
    (
        "list_datasets",
        "datasets::a_dataset_of_a_hidden_table_does_not_exist",
    ),
    (
        "list_webhooks",
        "groups::a_narrowed_key_manages_no_webhooks",
    ),
    (
        "predict_table",
        "operations: the table is looked up as for a write",
    ),
    (
        "rotate_webhook_secret",
        "groups::a_narrowed_key_manages_no_webhooks",
    ),
    (
        "update_webhook",
        "groups::a_narrowed_key_manages_no_webhooks",
    ),
];

/// Caller to whom the tables are visible.
struct Insider<'l> {
    name: &'static str,
    client: &'l Client,
    scopes: Scopes,
    right: TableRight,
}

impl Insider<'_> {
    /// The code of the refusal that it gets; `None` where it may.
    fn refusal(&self, way: &Way) -> Option<&'static str> {
        if !self.scopes.contains(way.scope) {
            Some("scope_missing")
        } else if way.writes && self.right == TableRight::Read {
            Some("table_read_only")
        } else {
            None
        }
    }
}

impl Lab {
    fn insiders(&self) -> [Insider<'_>; 4] {
        let of = |name, client, role: Role, right| Insider {
            name,
            client,
            scopes: role.scopes(),
            right,
        };
        // The administrator last: what it deletes is deleted.
        [
            of(
                "a viewer of the group of writers",
                &self.viewer_inside,
                Role::Viewer,
                TableRight::Write,
            ),
            of(
                "a member who may read",
                &self.reader,
                Role::Member,
                TableRight::Read,
            ),
            of(
                "a member who may write",
                &self.inside,
                Role::Member,
                TableRight::Write,
            ),
            of(
                "an administrator",
                &self.on.client,
                Role::Admin,
                TableRight::Write,
            ),
        ]
    }

    /// A text with the hidden tables in it, or with none.
    fn filled(&self, text: &str, is_hidden: bool) -> String {
        let [table, points, row] = if is_hidden {
            [HIDDEN, HIDDEN_POINTS, &self.row]
        } else {
            [NOTHING, NO_POINTS, UNKNOWN]
        };
        text.replace("$T", table)
            .replace("$P", points)
            .replace("$R", row)
            .replace("$E", &self.execution)
    }

    /// The request of a way, begun by who sends it.
    fn request(
        &self,
        way: &Way,
        is_hidden: bool,
        begin: impl FnOnce(&str, &str) -> RequestBuilder,
    ) -> RequestBuilder {
        let request = begin(way.method, &self.filled(way.path, is_hidden));
        match way.body {
            Body::None => request,
            Body::Json(body) => request
                .header("Content-Type", "application/json")
                .body(self.filled(body, is_hidden)),
            Body::File(file) => request
                .header("Content-Type", "multipart/form-data; boundary=b")
                .body(format!(
                    "--b\r\nContent-Disposition: form-data; name=\"mode\"\r\n\r\ninsert\r\n\
                     --b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"rows.csv\"\r\n\r\n\
                     {file}\r\n--b--\r\n"
                )),
        }
    }
}

#[tokio::test]
async fn each_way_gives_each_caller_what_its_rights_say() {
    let lab = Lab::start().await;
    let mut wrong = Vec::new();
    for way in WAYS {
        let named = format!("{} {}", way.operation, way.path);
        for outsider in &lab.outsiders {
            // A stranger makes the webhook, each with its own secret, in another organization.
            if outsider.name == "a stranger" && way.operation == "create_webhook" {
                continue;
            }
            let ask = async |is_hidden| {
                let begin = |method: &str, path: &str| outsider.request(method, path);
                send(lab.request(way, is_hidden, begin)).await
            };
            let (found, missing) = (ask(true).await, ask(false).await);
            let is_alike = found.status == missing.status;
            if let Some(leak) = leak(&found.text, &missing.text) {
                wrong.push(format!("{named} by {}: {leak}", outsider.name));
            } else if !is_alike {
                let (found, missing) = (found.status, missing.status);
                wrong.push(format!(
                    "{named} by {}: {found}, not {missing}",
                    outsider.name
                ));
            }
        }
        for insider in lab.insiders() {
            let begin = |method: &str, path: &str| {
                let method = Method::from_bytes(method.as_bytes()).unwrap();
                insider.client.request(method, path)
            };
            let reply = send(lab.request(way, true, begin)).await;
            let is_right = match insider.refusal(way) {
                Some(code) => reply.status == 403 && reply.text.contains(code),
                None => ![401, 403, 404, 405, 500].contains(&reply.status.as_u16()),
            };
            if !is_right {
                let (status, text) = (reply.status, &reply.text);
                wrong.push(format!("{named} by {}: {status} {text}", insider.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// An administrator sees the mark by every way that shows tables, so that what others do not see is there.
#[tokio::test]
async fn each_way_that_reads_shows_the_table_to_who_may() {
    let lab = Lab::start().await;
    // Counts of points, and moments before the first row.
    let shows = |way: &&Way| {
        let is_count = matches!(way.body, Body::Json(body) if body.contains("count") || body.contains("as_of"));
        way.scope == Scope::Read && !is_count && !way.path.contains("as_of")
    };
    for way in WAYS.iter().filter(shows) {
        let begin = |method: &str, path: &str| {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            lab.on.client.request(method, path)
        };
        let reply = send(lab.request(way, true, begin)).await;
        let is_shown = reply.text.contains(MARK) || way.operation == "get_table_access";
        assert!(
            reply.status.is_success() && is_shown,
            "{} {}",
            way.operation,
            reply.text
        );
    }
}

/// Follows a reference of the document.
fn resolved<'d>(document: &'d Value, value: &'d Value) -> &'d Value {
    let reference = value["$ref"].as_str().and_then(|it| it.strip_prefix('#'));
    reference.map_or(value, |pointer| document.pointer(pointer).unwrap())
}

/// Returns whether a schema has a property that names a table.
fn has_table(document: &Value, schema: &Value, seen: &mut BTreeSet<String>) -> bool {
    if let Some(reference) = schema["$ref"].as_str() {
        return seen.insert(reference.to_owned())
            && has_table(document, resolved(document, schema), seen);
    }
    match schema {
        Value::Object(fields) => fields.iter().any(|(name, value)| {
            let names_tables = |(name, _): (&String, &Value)| {
                name.contains("table") || ["query", "target_name"].contains(&name.as_str())
            };
            let is_named = name == "properties"
                && value
                    .as_object()
                    .is_some_and(|properties| properties.iter().any(names_tables));
            is_named || has_table(document, value, seen)
        }),
        Value::Array(values) => values.iter().any(|value| has_table(document, value, seen)),
        _ => false,
    }
}

/// Returns whether path, body or response of an operation name tables.
fn names_tables(document: &Value, path: &str, operation: &Value) -> bool {
    let success = operation["responses"].as_object().unwrap().iter();
    let mut success = success.filter(|(status, _)| status.starts_with('2'));
    path.contains("/tables/{")
        || path.contains("{table}")
        || has_table(document, &operation["requestBody"], &mut BTreeSet::new())
        || success.any(|(_, response)| has_table(document, response, &mut BTreeSet::new()))
}

/// An operation that is new and names tables has to be placed: as a way, or elsewhere with a reason.
#[test]
fn each_operation_that_names_tables_is_placed() {
    let document = openapi();
    let paths = document["paths"].as_object().unwrap().iter();
    let operations = paths.flat_map(|(path, methods)| {
        let methods = methods.as_object().unwrap().values();
        methods.map(move |operation| (path.as_str(), operation))
    });
    let naming = operations
        .filter(|(path, operation)| names_tables(&document, path, operation))
        .filter_map(|(_, operation)| operation["operationId"].as_str());
    let naming: BTreeSet<&str> = naming.collect();
    let ways: BTreeSet<&str> = WAYS.iter().map(|way| way.operation).collect();
    let elsewhere: BTreeSet<&str> = ELSEWHERE.iter().map(|(name, _)| *name).collect();
    let placed: BTreeSet<&str> = ways.union(&elsewhere).copied().collect();
    let missing: Vec<_> = naming.difference(&placed).collect();
    assert!(
        missing.is_empty(),
        "name tables, and are not placed: {missing:?}"
    );
    let stale: Vec<_> = elsewhere.difference(&naming).collect();
    assert!(stale.is_empty(), "name no tables: {stale:?}");
    assert!(ways.is_disjoint(&elsewhere));
}
