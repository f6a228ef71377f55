//! `POST /api/v1/tools/preview-table`

use serde_json::{Value, json};

use super::given::lab;
use crate::{files::Form, on_postgres::OnPostgres, server::Reply};

const PATH: &str = "/api/v1/tools/preview-table";

async fn preview(lab: &OnPostgres, text: &str, options: &[(&str, &str)]) -> Reply {
    let form = options
        .iter()
        .fold(Form::new(), |form, (name, value)| form.field(name, value));
    let form = form.file("export.txt", text.as_bytes());
    form.post_to(&lab.client, PATH).await
}

#[tokio::test]
async fn a_preview_shows_the_table_and_how_it_is_read() {
    let lab = lab().await;
    let text = "Export of May\n\nWell;OD, 600 nm;Vol (µl)\nA1;0,05;1\nA2;n.d.;\n";
    let found = preview(&lab, text, &[]).await.json(200);
    let column = |header: &str, name: &str, data_type: &str, unit: Value, nulls: u32| {
        json!({ "header": header, "name": name, "data_type": data_type, "unit": unit,
            "nulls": nulls })
    };
    let mut columns = found["columns"].clone();
    let examples: Vec<Value> = columns
        .as_array_mut()
        .unwrap()
        .iter_mut()
        .map(|column| column.as_object_mut().unwrap().remove("examples").unwrap())
        .collect();
    let expected = json!([
        column("Well", "well", "text", Value::Null, 0),
        column("OD, 600 nm", "od_600_nm", "text", Value::Null, 0),
        column("Vol (µl)", "vol", "integer", json!("µl"), 1),
    ]);
    assert_eq!(columns, expected);
    assert_eq!(examples[0], json!(["A1", "A2"]));
    assert_eq!(found["row_count"], 2);
    assert_eq!(found["rows"][0], json!(["A1", "0,05", 1]));
    assert_eq!(found["sheets"], Value::Null);
    let reading = &found["reading"];
    assert_eq!(
        (&reading["delimiter"], &reading["header_row"]),
        (&json!(";"), &json!(3))
    );
    assert!(lab.rows("sample", json!({})).await.is_empty());
}

#[tokio::test]
async fn options_settle_what_is_doubtful() {
    let lab = lab().await;
    let text = "a;d\n1.234;3/5/2024\n";
    let found = preview(&lab, text, &[]).await.json(200);
    let doubts = found["doubts"].as_array().unwrap();
    let codes: Vec<&str> = doubts
        .iter()
        .map(|doubt| doubt["code"].as_str().unwrap())
        .collect();
    assert_eq!(codes, ["number_format", "date_format"]);
    let chosen = doubts.iter().flat_map(|doubt| {
        let first = doubt["options"][1].as_object().unwrap().clone();
        first.into_iter()
    });
    let chosen: Vec<(String, String)> = chosen
        .map(|(name, value)| (name, value.as_str().unwrap().to_owned()))
        .collect();
    let chosen: Vec<(&str, &str)> = chosen
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let settled = preview(&lab, text, &chosen).await.json(200);
    assert_eq!(settled["doubts"], json!([]));
    assert_eq!(settled["rows"], json!([[1234, "2024-03-05"]]));
}

#[tokio::test]
async fn a_table_above_another_one_is_not_left_out_silently() {
    let lab = lab().await;
    let text = "well\t450\nA1\t0.5\nA2\t0.6\n\nwell\tod\tsd\nB1\t1\t2\nB2\t1\t2\n";
    let found = preview(&lab, text, &[]).await.json(200);
    assert_eq!(found["doubts"][0]["code"], "header_row");
    let options = json!([{ "header_row": 5 }, { "header_row": 1 }]);
    assert_eq!(found["doubts"][0]["options"], options);
    let settled = preview(&lab, text, &[("header_row", "5")]).await.json(200);
    assert_eq!(settled["doubts"], json!([]));
}

#[tokio::test]
async fn a_format_of_dates_is_confirmed_before_an_import_reads_it() {
    let lab = lab().await;
    for (day, format) in [
        ("25.12.2022", "%d.%m.%Y"),
        ("12/25/2022", "%m/%d/%Y"),
        ("07 Oct 2022", "%d %b %Y"),
    ] {
        let text = format!("name,day\nA,{day}\n");
        let found = preview(&lab, &text, &[]).await.json(200);
        let doubts = &found["doubts"];
        assert_eq!(doubts[0]["path"], "columns.day", "{day}");
        assert_eq!(doubts[0]["options"], json!([{ "date_format": format }]));
        let chosen = [("date_format", format)];
        let settled = preview(&lab, &text, &chosen).await.json(200);
        assert_eq!(settled["doubts"], json!([]));
        assert_eq!(settled["rows"], found["rows"]);
    }
}

#[tokio::test]
async fn wrong_options_and_files_are_refused() {
    let lab = lab().await;
    let wrong = preview(
        &lab,
        "a\n1\n",
        &[("timezone", "Mars/Base"), ("header_row", "x")],
    )
    .await;
    let mut problems: Vec<String> = wrong.problems().into_iter().map(|(_, at)| at).collect();
    problems.sort();
    assert_eq!(problems, ["body.header_row", "body.timezone"]);
    let empty = preview(&lab, "\n\n", &[]).await;
    assert!(empty.detail(400).contains("the file is empty"));
    let unknown = json!({ "file_id": "0191d5a4-0000-7000-8000-000000000000",
        "options": { "decimal": "," } });
    let unknown = lab.client.post(PATH, &unknown).await;
    assert_eq!(unknown.detail(404), "file not found");
    let options = json!({ "file_id": "0191d5a4-0000-7000-8000-000000000000",
        "options": { "decimal": ":" } });
    let problems = lab.client.post(PATH, &options).await.problems();
    assert_eq!(problems[0].1, "body.options.decimal");
}
