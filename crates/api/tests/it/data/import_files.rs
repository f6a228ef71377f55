//! `POST /api/v1/tables/{name}/import`: files, how they are read, and those that are refused.

use reqwest::StatusCode;
use serde_json::json;

use super::{
    given::lab,
    import::{form, insert, messages, path},
};
use crate::{files::Form, on_postgres::paths};

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
async fn null_values_are_repeated_fields_or_a_list_as_json() {
    let lab = lab().await;
    for values in [
        &["n.d.", "-999"][..],
        &[r#"["n.d.", "-999"]"#],
        &[r#"["n.d.", -999]"#],
    ] {
        let text = "name,volume\nA1,-999\nA2,n.d.\nA3,5\n";
        let mut form = form("insert", "rows.csv", text).field("dry_run", "true");
        for value in values {
            form = form.field("null_values", value);
        }
        let read = form.post_to(&lab.client, &path("sample")).await.json(200);
        let expected = json!(["n.d.", "-999"]);
        assert_eq!(read["reading"]["null_values"], expected, "{values:?}");
    }
    // What is no list of texts is one text.
    let form = form("insert", "rows.csv", "name\nA1\n").field("null_values", "[]");
    let read = form
        .field("dry_run", "true")
        .post_to(&lab.client, &path("sample"))
        .await;
    assert_eq!(read.json(200)["reading"]["null_values"], json!(["[]"]));
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
