//! Tables that scripts make, new types and names, labels and units.

use std::{io::Cursor, sync::Arc};

use labdata_domain::people::scope::Scope;
use labdata_memory::FixedClock;
use labdata_postgres::DatabaseSettings;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    on_postgres::OnPostgres,
    server::{Client, Reply, TestServer, in_memory, send},
};

const ENSURED: &str = "/api/v1/tables/plate?mode=ensure";
const DEFINED: &str = "/api/v1/tables/plate";

async fn put(client: &Client, path: &str, definition: &Value) -> Reply {
    send(client.request(Method::PUT, path).json(definition)).await
}

#[expect(clippy::needless_pass_by_value, reason = "each call makes its columns")]
fn plate(columns: Value) -> Value {
    json!({ "semantic_category": "curated", "columns": columns })
}

fn own_columns(table: &Value) -> Vec<&Value> {
    let columns = table["columns"].as_array().unwrap().iter();
    columns
        .filter(|column| column["is_system"] == false)
        .collect()
}

#[tokio::test]
async fn a_writer_ensures_tables_and_only_an_admin_changes_them() {
    let server = TestServer::start().await;
    let writer = server.client(&[Scope::Read, Scope::Write]).await;
    let barcode = json!({ "name": "barcode", "data_type": "string", "is_unique": true });
    let definition = plate(json!([barcode]));
    put(&writer, ENSURED, &definition).await.json(200);
    let wider = plate(json!([{ "name": "wells", "data_type": "integer" }]));
    let widened = put(&writer, ENSURED, &wider).await.json(200);
    let names: Vec<&Value> = own_columns(&widened).iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["id", "barcode", "wells"]);
    let other = plate(json!([{ "name": "wells", "data_type": "float" }]));
    let refused = put(&writer, ENSURED, &other).await;
    assert_eq!(
        refused.detail(400),
        "column \"wells\" is of type integer, not float"
    );
    assert!(
        put(&writer, DEFINED, &wider)
            .await
            .detail(403)
            .contains("admin")
    );
    let reader = server.client(&[Scope::Read]).await;
    assert!(
        put(&reader, ENSURED, &wider)
            .await
            .detail(403)
            .contains("write")
    );
    let unknown = put(&writer, "/api/v1/tables/plate?mode=merge", &wider).await;
    assert_eq!(
        unknown.problems(),
        [("enum".to_owned(), "query.mode".to_owned())]
    );
}

#[tokio::test]
async fn tables_may_be_left_to_administrators() {
    let clock = Arc::new(FixedClock::default());
    let mut services = in_memory(clock.clone());
    services.writers_define_tables = false;
    let server = TestServer::start_on(services, clock).await;
    let definition = plate(json!([{ "name": "barcode", "data_type": "string" }]));
    let writer = server.client(&[Scope::Read, Scope::Write]).await;
    assert!(
        put(&writer, ENSURED, &definition)
            .await
            .detail(403)
            .contains("admin")
    );
    let admin = server.admin().await;
    put(&admin, ENSURED, &definition).await.json(200);
}

#[tokio::test]
async fn fields_that_a_definition_does_not_have_are_refused() {
    let server = TestServer::start().await;
    let admin = server.admin().await;
    let column = json!({ "name": "barcode", "data_type": "string", "nullable": false });
    let mut definition = plate(json!([column]));
    definition["category"] = json!("curated");
    let refused = put(&admin, DEFINED, &definition).await;
    let places = ["body.columns.0.nullable", "body.category"];
    assert_eq!(
        refused.problems(),
        places.map(|place| ("extra_forbidden".to_owned(), place.to_owned()))
    );
    let renamed = json!({ "name": "barcode", "data_type": "string", "unit": "µg/ml" });
    let refused = put(&admin, DEFINED, &plate(json!([renamed]))).await;
    assert!(refused.detail(400).contains("\"µg/ml\" is no UCUM code"));
}

#[tokio::test]
async fn labels_and_units_are_in_the_schema_and_in_exported_fields() {
    let lab = OnPostgres::empty(DatabaseSettings::default()).await;
    let conc = json!({ "name": "conc", "data_type": "float",
        "label": "Concentration", "unit": "ug/mL" });
    lab.define("plate", plate(json!([conc]))).await;
    let curve = json!({ "semantic_category": "raw", "columns": [
        { "name": "plate", "data_type": "string", "references": "plate" },
        { "name": "od", "data_type": "float", "label": "Optical density", "unit": "1" },
    ] });
    lab.define("curve", curve).await;
    let schema = lab.client.get("/api/v1/tools/schema").await.json(200);
    let table = schema
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["name"] == "plate");
    let column = own_columns(table.unwrap())[1];
    assert_eq!(
        (&column["label"], &column["unit"]),
        (&json!("Concentration"), &json!("ug/mL"))
    );
    let written = json!({ "tables": [{ "table": "plate", "rows": [{ "id": "a", "conc": 1 }] }],
        "series": [{ "table": "curve", "parent": "a", "columns": { "od": [0.5] } }] });
    lab.write(written).await.json(200);
    for (path, name, label, unit) in [
        (
            "/api/v1/tables/plate/export?format=arrow",
            "conc",
            "Concentration",
            "ug/mL",
        ),
        (
            "/api/v1/tools/series/curve?parent=a",
            "od",
            "Optical density",
            "1",
        ),
    ] {
        let request = lab.client.request(Method::GET, path).header(
            "accept",
            "application/vnd.apache.arrow.stream, application/json;q=0.1",
        );
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        let bytes = response.bytes().await.unwrap();
        let reader = arrow_ipc::reader::StreamReader::try_new(Cursor::new(bytes), None).unwrap();
        let schema = reader.schema();
        let metadata = schema.field_with_name(name).unwrap().metadata();
        assert_eq!(
            metadata.get("label").map(String::as_str),
            Some(label),
            "{path}"
        );
        assert_eq!(
            metadata.get("unit").map(String::as_str),
            Some(unit),
            "{path}"
        );
    }
}

#[tokio::test]
async fn a_column_gets_a_wider_type_or_says_which_values_it_would_change() {
    let lab = OnPostgres::empty(DatabaseSettings::default()).await;
    let counted = |data_type: &str| {
        plate(json!([{ "name": "count", "data_type": data_type, "is_nullable": false }]))
    };
    lab.define("plate", counted("integer")).await;
    let rows = json!([{ "count": 7 }, { "count": 9_007_199_254_740_993_i64 }]);
    let written = lab.insert("plate", rows).await;
    let refused = put(&lab.client, DEFINED, &counted("float")).await;
    assert_eq!(refused.code(400), "stored_rows_conflict");
    assert!(
        refused.detail(400).ends_with("exactly: 9007199254740993"),
        "{}",
        refused.text
    );
    let impossible = put(&lab.client, DEFINED, &counted("uuid")).await;
    assert_eq!(impossible.code(400), "invalid_definition");
    put(&lab.client, DEFINED, &counted("text")).await.json(200);
    assert_eq!(
        lab.column("plate", "count").await,
        ["7", "9007199254740993"]
    );
    let query = json!({ "query": "select count from plate order by 1" });
    let found = lab
        .client
        .post("/api/v1/tools/query", &query)
        .await
        .json(200);
    assert_eq!(found["data"], json!([["7"], ["9007199254740993"]]));
    assert_eq!(lab.revert(&written).await["deleted_count"], 2);
}

#[tokio::test]
async fn a_renamed_table_is_read_and_queried_by_its_new_name() {
    let lab = OnPostgres::with_tables(DatabaseSettings::default()).await;
    let written = lab
        .insert("sample", json!([{ "id": "a", "name": "a" }]))
        .await;
    let series =
        json!({ "series": [{ "table": "curve", "parent": "a", "columns": { "od": [0.5] } }] });
    let series = lab.write(series).await.json(200);
    let query = async |text: &str| {
        let body = json!({ "query": text });
        lab.client.post("/api/v1/tools/query", &body).await
    };
    query("select name from sample").await.json(200);
    let mut specimen = plate(json!([{ "name": "name", "data_type": "string" }]));
    specimen["renamed_from"] = json!("sample");
    let path = "/api/v1/tables/specimen";
    // A definition that leaves out columns is refused, renamed or not.
    assert!(
        put(&lab.client, path, &specimen)
            .await
            .detail(400)
            .contains("missing")
    );
    specimen["columns"] = json!([
        { "name": "name", "data_type": "string", "is_nullable": false, "is_unique": true },
        { "name": "volume", "data_type": "float" },
        { "name": "note", "data_type": "text" },
        { "name": "parent", "data_type": "string", "references": "specimen" },
    ]);
    put(&lab.client, path, &specimen).await.json(200);
    assert_eq!(
        query("select name from specimen").await.json(200)["data"],
        json!([["a"]])
    );
    query("select name from sample").await.detail(400);
    let found = query("select od, s.name from curve c join specimen s on s.id = c.sample_id").await;
    assert_eq!(found.json(200)["data"], json!([[0.5, "a"]]));
    let rows = lab.rows("specimen", json!({})).await;
    assert_eq!(rows[0]["id"], "a");
    lab.revert(&series).await;
    assert_eq!(lab.revert(&written).await["deleted_count"], 1);
}
