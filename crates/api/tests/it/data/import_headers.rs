//! `POST /api/v1/tables/{name}/import`: columns for the fields of a header.

use serde_json::{Value, json};

use super::{
    given::lab,
    import_ends::{file, import, lab_with_wells},
};
use crate::{files::Form, on_postgres::paths};

#[tokio::test]
async fn two_headers_of_one_column_are_a_problem_that_names_both() {
    let lab = lab().await;
    for (header, path, other) in [
        ("name,NAME", "columns.NAME", "name"),
        ("Name,name ", "columns.name", "Name"),
        ("name,volume,Volume (µl)", "columns.Volume (µl)", "volume"),
        ("name,Parent,parent_id", "columns.parent_id", "Parent"),
    ] {
        let cells = header.split(',').map(|_| "1").collect::<Vec<_>>().join(",");
        let refused = import(
            &lab,
            "sample",
            file("insert", &format!("{header}\n{cells}\n")),
        )
        .await;
        assert_eq!(paths(&refused), [path], "{header}");
        assert!(
            refused.text.contains(&format!("\\\"{other}\\\"")),
            "{}",
            refused.text
        );
    }
}

#[tokio::test]
async fn headers_find_their_columns_without_regard_to_form() {
    let lab = lab_with_wells().await;
    for header in [
        "od",
        "OD",
        " O.D. ",
        "OD [AU]",
        "OD (600 nm)",
        "Ｏｄ",
        "\"o\nd\"",
        "O_D",
    ] {
        let csv = format!("Measured On,POSITION,Sample ID,{header}\n2026-03-01,A1,s1,0.5\n");
        let dry = file("insert", &csv).field("dry_run", "true");
        let imported = import(&lab, "well", dry).await.json(200);
        let columns: Vec<&Value> = imported["columns"].as_object().unwrap().values().collect();
        assert_eq!(columns.len(), 4, "{header}: {imported}");
    }
    let column = json!({ "name": "volume_ul", "data_type": "float" });
    let definition = json!({ "semantic_category": "curated", "columns": [column] });
    lab.define("liquid", definition).await;
    for micro in ['\u{b5}', '\u{3bc}'] {
        let columns = json!({ format!("Vol. ({micro}l)"): "volume_ul" }).to_string();
        // As the file has it, and with the other sign.
        let form = file("insert", &format!("Vol. ({micro}l)\n1.5\n")).field("columns", &columns);
        import(&lab, "liquid", form).await.json(200);
    }
}

/// A form with all options of a reading, as the preview gave them.
fn read_as(reading: &Value, form: Form) -> Form {
    let fields = reading.as_object().unwrap().iter();
    fields.fold(form, |form, (name, value)| match value {
        Value::Null => form,
        Value::String(text) => form.field(name, text),
        Value::Array(list) => list
            .iter()
            .fold(form, |form, item| form.field(name, item.as_str().unwrap())),
        number => form.field(name, &number.to_string()),
    })
}

#[tokio::test]
async fn a_messy_sheet_is_linked_to_two_tables_by_one_preview_and_one_call() {
    let lab = lab_with_wells().await;
    let sheet = "Plate reader export;;;;\n;;;;\nPLATE;Sample;Position;Measured on;OD (600 nm)\n\
        P-1;alpha;A1;13.03.2026;0,512\n;;;;\nP-1;beta;A2;14.03.2026;1.024,5\nP-2;;A1;;\n";
    let form = || Form::new().file("export.txt", sheet.as_bytes());
    let path = "/api/v1/tools/preview-table";
    let preview = form().post_to(&lab.client, path).await.json(200);
    // The reading that is sent back confirms the format of the dates.
    let doubts = preview["doubts"].as_array().unwrap();
    let options: Vec<&Value> = doubts.iter().map(|doubt| &doubt["options"]).collect();
    assert_eq!(options, [&json!([{ "date_format": "%d.%m.%Y" }])]);
    let form = read_as(&preview["reading"], form().field("mode", "insert"));
    let form = form.field("lookups", &json!({ "plate": "name" }).to_string());
    let imported = import(&lab, "well", form).await.json(200);
    assert_eq!(imported["reading"], preview["reading"]);
    let rows = lab
        .rows("well", json!({ "plate": "p1", "position": "A2" }))
        .await;
    let found = ["sample", "measured_on", "od"].map(|name| rows[0][name].clone());
    assert_eq!(found, [json!("s2"), json!("2026-03-14"), json!(1024.5)]);
    assert_eq!(lab.rows("well", json!({})).await.len(), 3);
}
