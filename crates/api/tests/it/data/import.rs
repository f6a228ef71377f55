//! `POST /api/v1/tables/{name}/import`, on PostgreSQL.

use labdata_domain::{people::scope::Scope, refusal::ErrorCode};
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::given::lab;
use crate::{
    files::Form,
    on_postgres::{OnPostgres, paths},
    server::{Client, Reply},
};

pub(super) fn path(table: &str) -> String {
    format!("/api/v1/tables/{table}/import")
}

/// A form with a file and the mode.
pub(super) fn form(mode: &str, name: &str, bytes: impl AsRef<[u8]>) -> Form {
    let form = Form::new().field("mode", mode);
    form.file(name, bytes.as_ref())
}

pub(super) async fn insert(lab: &OnPostgres, csv: impl AsRef<[u8]>) -> Reply {
    form("insert", "rows.csv", csv)
        .post_to(&lab.client, &path("sample"))
        .await
}

/// The messages of a refused import by their paths.
#[track_caller]
pub(super) fn messages(reply: &Reply) -> Vec<(String, String)> {
    let errors = reply.json(400)["errors"].as_array().unwrap().clone();
    assert_eq!(reply.code(400), "invalid_write");
    let pairs = errors.into_iter().map(|error| {
        let code = error["code"].as_str();
        let is_known = |known: &ErrorCode| Some(known.as_str()) == code;
        assert!(ErrorCode::ALL.iter().any(is_known), "{error}");
        let path = error["path"].as_str().unwrap_or_default().to_owned();
        (path, error["message"].as_str().unwrap().to_owned())
    });
    pairs.collect()
}

#[tokio::test]
async fn rows_of_a_file_are_written_and_can_be_reverted() {
    let lab = lab().await;
    let reply = insert(&lab, "name,volume,note\nA,1.5,x\nB,,\n").await;
    let imported = reply.json(200);
    let columns = json!({ "name": "name", "volume": "volume", "note": "note" });
    assert_eq!(imported["columns"], columns);
    assert_eq!(
        (&imported["created"], &imported["updated"]),
        (&json!(2), &json!(0))
    );
    assert_eq!(
        lab.column("sample", "volume").await,
        [json!(1.5), Value::Null]
    );
    let rows = lab.rows("sample", json!({ "name": "B" })).await;
    assert_eq!(rows[0]["note"], Value::Null);
    assert_eq!(
        rows[0]["created_by_execution_id"],
        imported["job_execution_id"]
    );
    assert_eq!(lab.revert(&imported).await["deleted_count"], 2);
    assert!(lab.rows("sample", json!({})).await.is_empty());
}

#[tokio::test]
async fn rows_that_match_are_updated() {
    let lab = lab().await;
    lab.insert("sample", json!([{ "name": "A", "volume": 1, "note": "x" }]))
        .await;
    let columns = json!({ "Sample": "name", "Vol (µl)": "volume", "Remark": null });
    let reply = form(
        "upsert",
        "rows.csv",
        "Sample;Vol (µl);Remark\nA;;left out\nB;2;\n",
    )
    .field("key", "name")
    .field("columns", &columns.to_string())
    .post_to(&lab.client, &path("sample"))
    .await;
    let imported = reply.json(200);
    assert_eq!(
        (&imported["created"], &imported["updated"]),
        (&json!(1), &json!(1))
    );
    let chosen = json!({ "Sample": "name", "Vol (µl)": "volume" });
    assert_eq!(imported["columns"], chosen);
    let rows = lab.rows("sample", json!({ "name": "A" })).await;
    assert_eq!(
        (&rows[0]["volume"], &rows[0]["note"]),
        (&json!(1), &json!("x"))
    );
}

#[tokio::test]
async fn problems_name_the_lines_of_the_file() {
    let lab = lab().await;
    lab.insert("sample", json!([{ "name": "taken" }])).await;
    let csv = "name,volume,parent\n\
        ok,1,\n\
        \"two\nlines\",\"1,5\",\n\
        \n\
        ,2,\n\
        third,n.d.,nobody\n";
    let reply = insert(&lab, csv).await;
    let expected = [
        "rows[3].volume",
        "rows[6].name",
        "rows[7].volume",
        "rows[7].parent",
    ];
    assert_eq!(paths(&reply), expected);
    let messages = messages(&reply);
    assert_eq!(messages[0].1, "must be a number, not \"1,5\"");
    assert_eq!(messages[1].1, "must not be null");
    assert!(
        messages[3]
            .1
            .contains("no row of \"sample\" has the id or the name \"nobody\"")
    );
    let ids = insert(&lab, "id,name\nx,a\ny,b\n\nx,c\n").await;
    assert_eq!(paths(&ids), ["rows[5].id"]);
    assert!(ids.text.contains("(first in rows[2])"), "{}", ids.text);
    let twice = form("upsert", "rows.csv", "name\na\n\nb\na\n")
        .field("key", "name")
        .post_to(&lab.client, &path("sample"))
        .await;
    assert_eq!(paths(&twice), ["rows[5]"]);
    assert!(twice.text.contains("as rows[2]"), "{}", twice.text);
    assert_eq!(lab.rows("sample", json!({})).await.len(), 1);
}

#[tokio::test]
async fn past_one_hundred_problems_the_rest_is_counted() {
    let lab = lab().await;
    let rows: Vec<String> = (0..250).map(|number| format!("s{number},x\n")).collect();
    let rows = rows.concat();
    let reply = insert(&lab, format!("name,volume\n{rows}")).await;
    let messages = messages(&reply);
    assert_eq!(messages.len(), 101);
    assert_eq!(messages[99].0, "rows[101].volume");
    assert_eq!(messages[100].1, "and 150 more problems");
}

#[tokio::test]
async fn every_field_of_the_header_has_a_column_or_is_left_out() {
    let lab = lab().await;
    let reply = insert(&lab, "name,Volume,created_at,note,note\nA,1,2,3,4\n").await;
    assert_eq!(paths(&reply), ["columns.note"]);
    // Case does not matter, and system columns of an export are left out.
    let reply = insert(&lab, "Name,VOLUME,created_at\nA,1,2\n").await;
    assert_eq!(
        reply.json(200)["columns"],
        json!({ "Name": "name", "VOLUME": "volume" })
    );
    let columns = json!({ "name": "nothing", "missing": "note" }).to_string();
    let reply = form("insert", "rows.csv", "name\nA\n")
        .field("columns", &columns)
        .post_to(&lab.client, &path("sample"))
        .await;
    assert_eq!(paths(&reply), ["columns.name", "columns.missing"]);
    let key = form("upsert", "rows.csv", "name\nA\n")
        .field("key", "name")
        .field("key", "Name")
        .post_to(&lab.client, &path("sample"))
        .await;
    assert_eq!(paths(&key), ["key[1]"]);
}

#[tokio::test]
async fn cells_are_read_by_the_types_of_their_columns() {
    let lab = lab().await;
    lab.define(
        "everything",
        json!({ "semantic_category": "curated", "columns": [
            { "name": "code", "data_type": "string" },
            { "name": "count", "data_type": "integer" },
            { "name": "share", "data_type": "float" },
            { "name": "is_good", "data_type": "boolean" },
            { "name": "at", "data_type": "datetime" },
            { "name": "day", "data_type": "date" },
            { "name": "device", "data_type": "uuid" },
            { "name": "more", "data_type": "json" },
            { "name": "unit", "data_type": "string", "is_nullable": false, "default": "ml" },
        ] }),
    )
    .await;
    let csv = "code,count,share,is_good,at,day,device,more,unit\n\
        007,7.0,1e-3,TRUE,2026-03-01 12:00:00+01:00,2026-03-01,0199d6a0-0000-7000-8000-000000000000,\"{\"\"a\"\": [1]}\",\n\
        NA,NA,NaN,N/A,NA,NA,NA,NA,l\n";
    let import = async |csv: &str| {
        let form = form("insert", "rows.csv", csv);
        form.post_to(&lab.client, &path("everything")).await
    };
    import(csv).await.json(200);
    let rows = lab.rows("everything", json!({ "code": "007" })).await;
    let expected = json!({ "code": "007", "count": 7, "share": 0.001, "is_good": true,
        "at": "2026-03-01T11:00:00Z", "day": "2026-03-01",
        "device": "0199d6a0-0000-7000-8000-000000000000", "more": {"a": [1]}, "unit": "ml" });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(rows[0][name], *value, "{name}");
    }
    let missing = lab.rows("everything", json!({ "code": "NA" })).await;
    assert_eq!(
        (&missing[0]["share"], &missing[0]["unit"]),
        (&Value::Null, &json!("l"))
    );
    let wrong = "count,share,is_good,at,day\n1.5,<0.1,1,2026-03-01T12:00:00,1/3/2026\n";
    let names = ["count", "share", "is_good", "at", "day"];
    let expected: Vec<String> = names.iter().map(|name| format!("rows[2].{name}")).collect();
    assert_eq!(paths(&import(wrong).await), expected);
}

#[tokio::test]
async fn an_export_of_an_instrument_is_read_as_it_is() {
    let lab = lab().await;
    // Windows-1252, semicolons, carriage returns, a unit in the header, a blank line and a delimiter at the
    // end, and marks of missing values.
    let text = "\"Sample\";\"Volume (µl)\";\"Operator's\nremark\";\r\n\
        A1;2.5;\"30°, ok\";\r\n\
        A2;NaN;;\r\n\
        \r\n\
        A3;OVRFLW;\"\";\r\n";
    let bytes: Vec<u8> = text
        .chars()
        .map(|char| u8::try_from(char).unwrap())
        .collect();
    let columns =
        json!({ "Sample": "name", "Volume (µl)": "volume", "Operator's\nremark": "note" });
    let import = async |bytes: &[u8]| {
        form("insert", "Export 1.CSV", bytes)
            .field("columns", &columns.to_string())
            .post_to(&lab.client, &path("sample"))
            .await
    };
    let refused = import(&bytes).await;
    assert_eq!(
        messages(&refused),
        [(
            "rows[6].volume".to_owned(),
            "must be a number, not \"OVRFLW\"".to_owned(),
        )]
    );
    let fixed = text
        .replace("OVRFLW", "4")
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect::<Vec<_>>();
    let marked = [b"\xff\xfe".as_slice(), &fixed].concat();
    assert_eq!(import(&marked).await.json(200)["created"], 3);
    let rows = lab.rows("sample", json!({ "name": "A1" })).await;
    assert_eq!(
        (&rows[0]["volume"], &rows[0]["note"]),
        (&json!(2.5), &json!("30°, ok"))
    );
}

#[tokio::test]
async fn a_dry_run_writes_nothing() {
    let lab = lab().await;
    let run = async |csv: &str| {
        form("insert", "rows.csv", csv)
            .field("dry_run", "true")
            .post_to(&lab.client, &path("sample"))
            .await
    };
    let imported = run("name\nA\nB\n").await.json(200);
    assert_eq!(
        (&imported["created"], &imported["job_execution_id"]),
        (&json!(2), &Value::Null)
    );
    let repeated = run("name\nA\nA\n").await;
    assert!(
        repeated.text.contains("rows[2] has the same value"),
        "{}",
        repeated.text
    );
    assert_eq!(paths(&repeated), ["rows[3].name"]);
    assert!(lab.rows("sample", json!({})).await.is_empty());
}

#[tokio::test]
async fn an_import_is_recorded_under_the_execution_that_is_named() {
    let lab = lab().await;
    let opened = lab
        .client
        .post("/api/v1/job-executions", &json!({}))
        .await
        .json(200);
    let id = opened["job_execution_id"].as_str().unwrap();
    let import = async |execution: &str| {
        form("insert", "rows.csv", format!("name\nof {execution}\n"))
            .field("job_execution_id", execution)
            .post_to(&lab.client, &path("sample"))
            .await
    };
    assert_eq!(import(id).await.json(200)["job_execution_id"], id);
    let unknown = import("0199d6a0-0000-7000-8000-000000000000").await;
    assert_eq!(unknown.detail(404), "execution not found");
    let close = json!({ "status": "completed" });
    let path = format!("/api/v1/job-executions/{id}");
    lab.client.patch(&path, &close).await.json(200);
    assert_eq!(paths(&import(id).await), ["job_execution_id"]);
}

#[tokio::test]
async fn an_import_is_repeated_without_a_second_effect() {
    let lab = lab().await;
    let send = async |csv: &str| {
        let request = form("insert", "rows.csv", csv).request(&lab.client, &path("sample"));
        crate::server::send(request.header("Idempotency-Key", "once")).await
    };
    let first = send("name\nA\n").await.json(200);
    let again = send("name\nA\n").await;
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(again.json(200), first);
    assert_eq!(lab.rows("sample", json!({})).await.len(), 1);
    assert_eq!(
        send("name\nB\n").await.status,
        StatusCode::UNPROCESSABLE_ENTITY
    );
}

#[tokio::test]
async fn rows_go_into_tables_of_rows_only() {
    let lab = lab().await;
    let import = async |client: &Client, table: &str, csv: &str| {
        let form = form("insert", "rows.csv", csv);
        form.post_to(client, &path(table)).await
    };
    let client = &lab.client;
    let core = import(
        client,
        "experiment",
        "name,metadata\ngrowth,\"{\"\"a\"\": 1}\"\n",
    )
    .await;
    assert_eq!(core.json(200)["created"], 1);
    for (table, text) in [("curve", "is a raw table"), ("job", "read only")] {
        let refused = import(client, table, "name\na\n").await;
        let [(path, message)] = messages(&refused).try_into().unwrap();
        assert!(
            path == "table" && message.contains(text),
            "{path} {message}"
        );
    }
    let unknown = import(client, "nothing", "name\na\n").await;
    assert_eq!(unknown.detail(404), "table not found");
    let stranger = lab.server.stranger().await;
    let other = import(&stranger, "sample", "name\na\n").await;
    assert_eq!(other.detail(404), "table not found");
    let reader = lab.server.client(&[Scope::Read]).await;
    let forbidden = import(&reader, "sample", "name\na\n").await;
    assert!(forbidden.detail(403).contains("write"));
}

#[tokio::test]
async fn more_rows_than_a_data_write_has_are_one_transaction() {
    let lab = lab().await;
    let rows = |count: usize| -> String {
        let rows = (0..count).map(|number| format!("s{number},{number}"));
        format!("name,volume\n{}", rows.collect::<Vec<_>>().join("\n"))
    };
    let imported = insert(&lab, rows(12_000)).await.json(200);
    assert_eq!(imported["created"], 12_000);
    assert_eq!(lab.revert(&imported).await["deleted_count"], 12_000);
    let too_many = insert(&lab, rows(100_001)).await;
    let expected = (
        "file".to_owned(),
        "the file has more than 100000 rows".to_owned(),
    );
    assert_eq!(messages(&too_many), [expected]);
}

#[tokio::test]
async fn rows_of_several_statements_are_one_transaction() {
    let lab = lab().await;
    insert(&lab, "id,name\nd,D\n").await.json(200);
    // Two of them fill a statement.
    let rows = |sign: &str, last: &str| {
        let note = sign.repeat(3 << 20);
        format!("id,name,note\na,A,{note}\nb,B,{note}\nc,C,{note}\n{last}\n")
    };
    let refused = insert(&lab, rows("x", "d,D,")).await;
    assert_eq!(paths(&refused), ["rows[5].id"]);
    assert_eq!(lab.rows("sample", json!({})).await.len(), 1);
    let created = insert(&lab, rows("x", "e,E,")).await.json(200);
    assert_eq!(created["created"], 4);
    let updated = form("upsert", "rows.csv", rows("y", "f,F,"))
        .post_to(&lab.client, &path("sample"))
        .await
        .json(200);
    assert_eq!(
        (&updated["created"], &updated["updated"]),
        (&json!(1), &json!(3))
    );
    let notes = lab.column("sample", "note").await;
    let starts = |sign: &str| {
        let notes = notes.iter().filter_map(Value::as_str);
        notes.filter(|note| note.starts_with(sign)).count()
    };
    assert_eq!((starts("x"), starts("y")), (0, 3));
}
