//! Callers who may see the hidden tables do, and the events of a table reach them alone.

use labdata_application::{
    events::follow_events::follow_events, people::authenticate::authenticate,
};
use labdata_domain::events::EventPosition;
use serde_json::{Value, json};

use super::{HIDDEN, Lab, MARK};
use crate::{on_postgres::WRITE, server::Client};

/// Other tables are read as ever, and those who may see the hidden ones do.
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
    assert_eq!(told, [5, 5, 0]);
}
