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

fn path(table: &str) -> String {
    format!("/api/v1/tables/{table}/import")
}

/// A form with a file and the mode.
fn form(mode: &str, name: &str, bytes: impl AsRef<[u8]>) -> Form {
    let form = Form::new().field("mode", mode);
    form.file(name, bytes.as_ref())
}

async fn insert(lab: &OnPostgres, csv: impl AsRef<[u8]>) -> Reply {
    form("insert", "rows.csv", csv)
        .post_to(&lab.client, &path("sample"))
        .await
}

/// The messages of a refused import by their paths.
#[track_caller]
fn messages(reply: &Reply) -> Vec<(String, String)> {
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
async fn files_that_are_no_tables_are_refused() {
    let lab = lab().await;
    let files: [(&str, &[u8], &str); 6] = [
        ("rows.csv", b"", "empty"),
        ("rows.csv", b"PK\x03\x04\0\0\x08\0", "not an Excel workbook"),
        (
            "rows.xlsx",
            b"PK\x03\x04 and nothing of a workbook",
            "not an Excel workbook",
        ),
        (
            "rows.parquet",
            b"PAR1\xff\xff\xff\xff\x00\x00\xff\x00PAR1",
            "damaged",
        ),
        (
            "rows.csv",
            b"name,volume\na,1,2\n",
            "line 2 has 3 fields, but the header has 2",
        ),
        ("rows.csv", b"name\na\x00b\n", "neither text"),
    ];
    for (name, bytes, text) in files {
        let reply = form("insert", name, bytes)
            .post_to(&lab.client, &path("sample"))
            .await;
        let found = messages(&reply);
        assert!(found[0].1.contains(text), "{name}: {found:?}");
        assert!(
            ["file", "rows[2]"].contains(&found[0].0.as_str()),
            "{found:?}"
        );
    }
    let sheet = form("insert", "rows.csv", "name\na\n")
        .field("sheet", "Plate 1")
        .post_to(&lab.client, &path("sample"))
        .await;
    assert_eq!(paths(&sheet), ["sheet"]);
    assert!(lab.rows("sample", json!({})).await.is_empty());
}

#[tokio::test]
async fn a_file_is_read_by_its_content_and_the_response_says_how() {
    let lab = lab().await;
    let text = "Plate report\n\nName;Volume (µl)\nA1;1.234,5\nA2;0,05\n";
    let imported = form("insert", "export.txt", text)
        .post_to(&lab.client, &path("sample"))
        .await
        .json(200);
    let columns = json!({ "Name": "name", "Volume (µl)": "volume" });
    assert_eq!(imported["columns"], columns);
    let reading = &imported["reading"];
    let found = ["format", "delimiter", "decimal", "thousands", "encoding"]
        .map(|name| reading[name].as_str().unwrap());
    assert_eq!(found, ["csv", ";", ",", ".", "utf-8"]);
    assert_eq!(
        (&reading["header_row"], &reading["lines_above"]),
        (&json!(3), &json!(2))
    );
    let first = lab.rows("sample", json!({ "name": "A1" })).await;
    assert_eq!(first[0]["volume"], 1234.5);
    let again = Form::new()
        .field("mode", "upsert")
        .field("key", "name")
        .field("delimiter", ";")
        .field("decimal", ",")
        .field("thousands", ".")
        .field("header_row", "3")
        .file("export.txt", text.as_bytes())
        .post_to(&lab.client, &path("sample"))
        .await;
    assert_eq!(again.json(200)["updated"], 2);
}

#[tokio::test]
async fn what_would_have_to_be_guessed_is_a_problem_with_options() {
    let lab = lab().await;
    let text = "name;volume\nA;1.234\n";
    let refused = insert(&lab, text).await;
    let [(path_of, message)] = messages(&refused).try_into().unwrap();
    assert_eq!(path_of, "decimal");
    assert!(message.contains("\"thousands\":\".\""), "{message}");
    let import = async |decimal: &str, thousands: &str| {
        form("insert", "rows.csv", text)
            .field("decimal", decimal)
            .field("thousands", thousands)
            .field("dry_run", "true")
            .post_to(&lab.client, &path("sample"))
            .await
    };
    for (decimal, thousands) in [(",", "."), (".", "")] {
        import(decimal, thousands).await.json(200);
    }
    let same = import(",", ",").await;
    assert_eq!(
        same.problems(),
        [("value_error".to_owned(), "body.thousands".to_owned())]
    );
    // A column of texts is not read as numbers.
    let texts = insert(&lab, "name;note\nB;1.234\n").await;
    texts.json(200);
    let rows = lab.rows("sample", json!({ "name": "B" })).await;
    assert_eq!(rows[0]["note"], "1.234");
    let open = insert(&lab, "name,note\nC,\"no end\nD,fine\n").await;
    assert_eq!(paths(&open), ["rows[2]"]);
    let infinite = form("insert", "rows.csv", "name,volume\nE,inf\nF,1\n")
        .field("text_numbers", "null")
        .post_to(&lab.client, &path("sample"))
        .await;
    assert_eq!(paths(&infinite), ["rows[2].volume"]);
}

#[tokio::test]
async fn a_form_of_another_shape_is_refused_with_every_problem() {
    let lab = lab().await;
    let reply = Form::new()
        .field("mode", "replace")
        .field("columns", "[1]")
        .field("dry_run", "perhaps")
        .post_to(&lab.client, &path("sample"))
        .await;
    let problem = |kind: &str, place: &str| (kind.to_owned(), place.to_owned());
    let expected = [
        problem("missing", "body.file"),
        problem("enum", "body.mode"),
        problem("value_error", "body.columns"),
        problem("bool_parsing", "body.dry_run"),
    ];
    let mut found = reply.problems();
    found.sort();
    let mut expected = expected.to_vec();
    expected.sort();
    assert_eq!(found, expected);
    let columns = form("insert", "rows.csv", "name\na\n")
        .field("columns", "{\"name\": 1}")
        .post_to(&lab.client, &path("sample"))
        .await;
    assert_eq!(
        columns.problems(),
        [problem("string_type", "body.columns.name")]
    );
    let json = lab.client.post(&path("sample"), &json!({})).await;
    assert_eq!(json.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
}

#[tokio::test]
async fn a_file_that_is_too_large_is_refused() {
    let lab = lab().await;
    let row = "n".repeat(1 << 20);
    let large = format!("name\n{}", format!("{row}\n").repeat(101));
    let refused = insert(&lab, large).await;
    assert_eq!(
        refused.status,
        StatusCode::PAYLOAD_TOO_LARGE,
        "{}",
        refused.text
    );
    let fields = Form::new()
        .field("mode", "insert")
        .field("sheet", &"s".repeat(2 << 20))
        .file("rows.csv", b"name\na\n")
        .post_to(&lab.client, &path("sample"))
        .await;
    let [(kind, place)] = fields.problems().try_into().unwrap();
    assert_eq!((kind.as_str(), place.as_str()), ("value_error", "body"));
    insert(&lab, "name\na\n").await.json(200);
}
