//! SQL about hidden tables.

use serde_json::json;

use super::{HIDDEN, Lab, MARK, NOTHING, leak};
use crate::server::Client;

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
