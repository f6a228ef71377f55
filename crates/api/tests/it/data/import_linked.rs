//! `POST /api/v1/tables/{name}/import` with `linked`: one sheet becomes rows of several tables.

use serde_json::{Value, json};

use super::given::lab;
use crate::{
    files::Form,
    on_postgres::{OnPostgres, paths},
    server::Reply,
};

/// A server with plates, wells of plates, and readings of wells.
async fn lab_with_readings() -> OnPostgres {
    let lab = lab().await;
    let text = |name: &str| json!({ "name": name, "data_type": "string" });
    let reference = |name: &str| json!({ "name": name, "data_type": "string", "references": name });
    let barcode = json!({ "name": "barcode", "data_type": "string", "is_unique": true });
    let od = json!({ "name": "od", "data_type": "float" });
    for (name, columns) in [
        ("plate", json!([barcode, text("maker")])),
        ("well", json!([reference("plate"), text("position")])),
        ("reading", json!([reference("well"), od])),
    ] {
        let table = json!({ "semantic_category": "curated", "columns": columns });
        lab.define(name, table).await;
    }
    lab
}

fn linked() -> Value {
    json!([
        { "table": "plate", "columns": { "Plate": "barcode", "Maker": "maker" }, "of": "well" },
        { "table": "well", "columns": { "Well": "position" }, "key": ["plate", "position"] },
    ])
}

async fn import(lab: &OnPostgres, csv: &str, linked: &Value) -> Reply {
    let form = Form::new()
        .field("mode", "insert")
        .field("linked", &linked.to_string());
    let form = form.file("sheet.csv", csv.as_bytes());
    form.post_to(&lab.client, "/api/v1/tables/reading/import")
        .await
}

fn counts(imported: &Value) -> Vec<(&str, u64, u64)> {
    let tables = imported["tables"].as_array().unwrap().iter();
    let count = |table: &Value, name: &str| table[name].as_u64().unwrap();
    tables
        .map(|it| {
            let name = it["table"].as_str().unwrap();
            (name, count(it, "created"), count(it, "updated"))
        })
        .collect()
}

#[tokio::test]
async fn one_sheet_becomes_rows_of_three_tables_and_one_revert_takes_them() {
    let lab = lab_with_readings().await;
    lab.insert("plate", json!([{ "id": "p1", "barcode": "P-1" }]))
        .await;
    let csv =
        "Plate,Maker,Well,OD\nP-1,Acme,A1,0.1\nP-1,,A2,0.2\nP-2,,A1,0.3\nP-2,,A1,0.4\n,,,0.5\n";
    let imported = import(&lab, csv, &linked()).await.json(200);
    assert_eq!(
        counts(&imported),
        [("plate", 1, 1), ("well", 3, 0), ("reading", 5, 0)]
    );
    assert_eq!(
        (&imported["created"], &imported["columns"]),
        (&json!(5), &json!({ "OD": "od" }))
    );
    assert_eq!(
        imported["tables"][0]["columns"],
        json!({ "Plate": "barcode", "Maker": "maker" })
    );
    let plates = lab.rows("plate", json!({})).await;
    let first = plates
        .iter()
        .find(|plate| plate["barcode"] == "P-1")
        .unwrap();
    assert_eq!(
        (&first["id"], &first["maker"]),
        (&json!("p1"), &json!("Acme"))
    );
    let wells = lab.rows("well", json!({})).await;
    let well_of = |reading: &Value| {
        let well = wells.iter().find(|well| well["id"] == reading["well"])?;
        Some((well["plate"] == "p1", well["position"].as_str()?))
    };
    let readings = lab.rows("reading", json!({})).await;
    let mut found: Vec<_> = readings
        .iter()
        .map(|reading| (reading["od"].to_string(), well_of(reading)))
        .collect();
    found.sort();
    let expected = [
        ("0.1", Some((true, "A1"))),
        ("0.2", Some((true, "A2"))),
        ("0.3", Some((false, "A1"))),
        ("0.4", Some((false, "A1"))),
        ("0.5", None),
    ];
    assert_eq!(found, expected.map(|(od, well)| (od.to_owned(), well)));
    lab.revert(&imported).await;
    let plates = lab.rows("plate", json!({})).await;
    assert_eq!((plates.len(), &plates[0]["maker"]), (1, &Value::Null));
    assert_eq!(lab.rows("well", json!({})).await.len(), 0);
}

#[tokio::test]
async fn problems_of_linked_tables_name_the_line_and_the_table() {
    let lab = lab_with_readings().await;
    let refused = |csv: &'static str, linked: Value| {
        let lab = &lab;
        async move { paths(&import(lab, csv, &linked).await) }
    };
    let csv = "Plate,Maker,Well,OD\nP-1,Acme,A1,0.1\nP-1,Other,A2,0.2\nP-1,,,0.3\n";
    let expected = ["rows[3].plate.maker", "rows[4].well.position"];
    assert_eq!(refused(csv, linked()).await, expected);
    let csv = "Plate,Maker,Well,OD\nP-1,Acme,A1,0.1\n";
    let of_nothing = json!([{ "table": "plate", "columns": { "Plate": "barcode" } }]);
    assert_eq!(refused(csv, of_nothing).await, ["linked[0].reference"]);
    assert_eq!(lab.rows("plate", json!({})).await.len(), 0);
    for shape in [json!({}), json!([]), json!([{ "table": "plate" }])] {
        import(&lab, csv, &shape).await.json(422);
    }
}
