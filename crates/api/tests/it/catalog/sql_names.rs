//! Tables and columns whose names PostgreSQL reads as values, on PostgreSQL.

use labdata_postgres::DatabaseSettings;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    on_postgres::OnPostgres,
    server::{Reply, send},
};

/// Words that PostgreSQL reads as values, or as constants.
const NAMES: [&str; 15] = [
    "current_catalog",
    "current_date",
    "current_role",
    "current_schema",
    "current_time",
    "current_timestamp",
    "current_user",
    "localtime",
    "localtimestamp",
    "session_user",
    "system_user",
    "user",
    "null",
    "true",
    "false",
];

async fn put(lab: &OnPostgres, table: &str, definition: &Value) -> Reply {
    let path = format!("/api/v1/tables/{table}");
    send(lab.client.request(Method::PUT, &path).json(definition)).await
}

async fn query(lab: &OnPostgres, text: &str) -> Reply {
    let body = json!({ "query": text });
    lab.client.post("/api/v1/tools/query", &body).await
}

fn curated(columns: &Value) -> Value {
    json!({ "semantic_category": "curated", "columns": columns })
}

#[tokio::test]
async fn a_column_that_reads_as_a_value_has_another_name_in_sql() {
    let lab = OnPostgres::empty(DatabaseSettings::default()).await;
    let columns = NAMES.map(|name| json!({ "name": name, "data_type": "string" }));
    let table = put(&lab, "log", &curated(&json!(columns))).await.json(200);
    let own = table["columns"].as_array().unwrap();
    let own = own
        .iter()
        .filter(|it| NAMES.iter().any(|name| it["name"] == *name));
    for column in own {
        let name = column["name"].as_str().unwrap();
        assert_eq!(column["sql_column_name"], format!("{name}_"));
    }
    let row: serde_json::Map<String, Value> = NAMES
        .map(|name| (name.to_owned(), json!(format!("my {name}"))))
        .into_iter()
        .collect();
    lab.insert("log", json!([row])).await;
    for name in NAMES {
        assert_eq!(lab.column("log", name).await, [format!("my {name}")]);
        let found = lab.rows("log", json!({ name: format!("my {name}") })).await;
        assert_eq!(found.len(), 1, "{name}");
        let read = query(&lab, &format!("select {name}_, log.{name}_ from log")).await;
        let value = format!("my {name}");
        assert_eq!(read.json(200)["data"], json!([[value, value]]));
        if ["null", "true", "false"].contains(&name) {
            continue;
        }
        for text in [
            format!("select {name} from log"),
            format!("select 1 from log where {} = 'x'", name.to_uppercase()),
            format!("select 1 as {name} order by {name}"),
            format!("select {name}"),
        ] {
            let refused = query(&lab, &text).await.detail(400);
            assert!(
                refused.contains(&format!("\"{name}_\" in SQL")),
                "{text}: {refused}"
            );
        }
    }
}

#[tokio::test]
async fn a_table_that_reads_as_a_value_has_another_name_in_sql() {
    let lab = OnPostgres::empty(DatabaseSettings::default()).await;
    let columns = json!([{ "name": "name", "data_type": "string", "is_unique": true }]);
    let table = put(&lab, "user", &curated(&columns)).await.json(200);
    assert_eq!(
        (&table["name"], &table["sql_table_name"]),
        (&json!("user"), &json!("user_"))
    );
    let reference = json!([{ "name": "user", "data_type": "string", "references": "user" }]);
    let visits = put(&lab, "visit", &curated(&reference)).await.json(200);
    assert_eq!(visits.get("sql_table_name"), None);
    lab.insert("user", json!([{ "id": "u", "name": "Ada" }]))
        .await;
    lab.insert("visit", json!([{ "user": "u" }])).await;
    let joined = "select name from visit join user_ on user_.id = user_id";
    assert_eq!(
        query(&lab, joined).await.json(200)["data"],
        json!([["Ada"]])
    );
    let refused = query(&lab, "select * from user").await.detail(400);
    assert!(refused.contains("\"user_\" in SQL"), "{refused}");
    let twice = lab.write(json!({ "tables": [{ "table": "user", "rows": [{ "name": "Ada" }] }] }));
    twice.await.json(400);
    let schema = lab.client.get("/api/v1/tools/schema").await.json(200);
    let entry = schema
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["name"] == "user");
    assert_eq!(entry.unwrap()["row_count_estimate"], 1);
    // Neither may another table have that name in SQL, nor another column.
    let twin = put(&lab, "user_", &curated(&columns)).await.detail(400);
    assert!(twin.contains("\"user_\" in SQL"), "{twin}");
    let columns = ["null", "null_"].map(|name| json!({ "name": name, "data_type": "date" }));
    let twins = put(&lab, "other", &curated(&json!(columns)))
        .await
        .detail(400);
    assert!(twins.contains("\"null_\" in SQL"), "{twins}");
}

#[tokio::test]
async fn names_that_read_as_values_can_be_given_and_taken() {
    let lab = OnPostgres::empty(DatabaseSettings::default()).await;
    let column = |name: &str, from: &str| json!([{ "name": name, "data_type": "string", "renamed_from": from }]);
    let define = async |name: &str, from: &str, columns: &Value| {
        let definition =
            json!({ "semantic_category": "curated", "renamed_from": from, "columns": columns });
        put(&lab, name, &definition).await.json(200)
    };
    let plain = json!([{ "name": "who", "data_type": "string" }]);
    put(&lab, "people", &curated(&plain)).await.json(200);
    lab.insert("people", json!([{ "who": "Ada" }])).await;
    let mut former = ("people", "who");
    for name in ["user", "user_", "current_user", "staff"] {
        define(name, former.0, &column(name, former.1)).await;
        assert_eq!(lab.column(name, name).await, ["Ada"], "{name}");
        former = (name, name);
    }
    assert_eq!(
        query(&lab, "select staff from staff").await.json(200)["data"],
        json!([["Ada"]])
    );
    put(&lab, "user", &curated(&plain)).await.json(200);
    assert_eq!(lab.client.delete("/api/v1/tables/user").await.status, 204);
}

#[tokio::test]
async fn a_raw_table_may_have_such_names_too() {
    let lab = OnPostgres::with_tables(DatabaseSettings::default()).await;
    let columns = json!([
        { "name": "sample", "data_type": "string", "references": "sample" },
        { "name": "current_time", "data_type": "float" },
    ]);
    let definition = json!({ "semantic_category": "raw", "columns": columns });
    put(&lab, "localtime", &definition).await.json(200);
    lab.insert("sample", json!([{ "id": "s", "name": "s" }]))
        .await;
    let series = json!({ "series": [{ "table": "localtime", "parent": "s",
        "columns": { "current_time": [0.5, 1.5] } }] });
    lab.write(series).await.json(200);
    let read = query(&lab, "select current_time_ from localtime_ order by 1").await;
    assert_eq!(read.json(200)["data"], json!([[0.5], [1.5]]));
    let export = lab
        .client
        .get("/api/v1/tables/localtime/export?format=csv")
        .await;
    assert!(export.text.contains("0.5"), "{}", export.text);
}
