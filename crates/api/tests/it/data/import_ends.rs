//! `POST /api/v1/tables/{name}/import`: references by name, blank cells, exports, uniqueness, the file.

use reqwest::Method;
use serde_json::{Value, json};

use super::given::lab;
use crate::{
    files::Form,
    on_postgres::{OnPostgres, paths},
    server::Reply,
};

pub(super) async fn import(lab: &OnPostgres, table: &str, form: Form) -> Reply {
    let path = format!("/api/v1/tables/{table}/import");
    form.post_to(&lab.client, &path).await
}

pub(super) fn file(mode: &str, csv: &str) -> Form {
    let form = Form::new().field("mode", mode);
    form.file("rows.csv", csv.as_bytes())
}

/// A server with plates, which have a unique name and a unique barcode, and wells of plates and samples.
pub(super) async fn lab_with_wells() -> OnPostgres {
    let lab = lab().await;
    lab.define(
        "plate",
        json!({ "semantic_category": "curated", "columns": [
            { "name": "name", "data_type": "string", "is_unique": true },
            { "name": "barcode", "data_type": "string", "is_unique": true },
            { "name": "number", "data_type": "integer", "is_unique": true },
            { "name": "note", "data_type": "text" },
        ] }),
    )
    .await;
    lab.define(
        "well",
        json!({ "semantic_category": "curated", "unique_together": [["plate", "position"]], "columns": [
            { "name": "plate", "data_type": "string", "references": "plate" },
            { "name": "sample", "data_type": "string", "references": "sample" },
            { "name": "position", "data_type": "string", "is_nullable": false },
            { "name": "measured_on", "data_type": "date" },
            { "name": "od", "data_type": "float" },
        ] }),
    )
    .await;
    lab.insert(
        "plate",
        json!([
            { "id": "p1", "name": "P-1", "barcode": "b1", "number": 7 },
            { "id": "p2", "name": "P-2", "barcode": "b2", "number": 8 },
        ]),
    )
    .await;
    lab.insert(
        "sample",
        json!([{ "id": "s1", "name": "alpha" }, { "id": "s2", "name": "beta" }]),
    )
    .await;
    lab
}

async fn plates_of(lab: &OnPostgres, form: Form) -> Value {
    let imported = import(lab, "well", form).await.json(200);
    let plates = lab.column("well", "plate").await;
    lab.revert(&imported).await;
    plates.into()
}

#[tokio::test]
async fn a_reference_is_the_key_or_the_only_unique_text() {
    let lab = lab_with_wells().await;
    let csv = "position,Sample\nA1,alpha\nA2,s2\nA3,beta\nA4,\n";
    import(&lab, "well", file("insert", csv)).await.json(200);
    let rows = lab.rows("well", json!({})).await;
    let sample = |position: &str| {
        let row = rows.iter().find(|row| row["position"] == position);
        row.unwrap()["sample"].clone()
    };
    let found = ["A1", "A2", "A3", "A4"].map(sample);
    assert_eq!(found, [json!("s1"), json!("s2"), json!("s2"), Value::Null]);
    let unknown = import(&lab, "well", file("insert", "position,sample\nB1,gamma\n")).await;
    assert_eq!(paths(&unknown), ["rows[2].sample"]);
    let message = "no row of \\\"sample\\\" has the id or the name \\\"gamma\\\"";
    assert!(unknown.text.contains(message), "{}", unknown.text);
}

#[tokio::test]
async fn a_cell_that_is_the_key_of_one_row_and_the_name_of_another_is_refused() {
    let lab = lab_with_wells().await;
    lab.insert("sample", json!([{ "id": "alpha", "name": "s3" }]))
        .await;
    let csv = "position,sample\nA1,alpha\nA2,s3\n";
    let refused = import(&lab, "well", file("insert", csv)).await;
    assert_eq!(paths(&refused), ["rows[2].sample"]);
    assert!(
        refused.text.contains("lookup_ambiguous"),
        "{}",
        refused.text
    );
    let settled = |column: &str| {
        let lookups = json!({ "sample": column }).to_string();
        file("insert", "position,sample\nA1,alpha\n").field("lookups", &lookups)
    };
    for (column, expected) in [("name", "s1"), ("id", "alpha")] {
        let imported = import(&lab, "well", settled(column)).await.json(200);
        assert_eq!(lab.column("well", "sample").await, [expected], "{column}");
        lab.revert(&imported).await;
    }
}

#[tokio::test]
async fn lookups_name_the_unique_column_of_the_referenced_table() {
    let lab = lab_with_wells().await;
    let csv = |cell: &str| file("insert", &format!("position,plate\nA1,{cell}\n"));
    let by = |column: &str, cell: &str| {
        csv(cell).field("lookups", &json!({ "plate": column }).to_string())
    };
    // Two unique texts: only the key, unless one is chosen.
    let refused = import(&lab, "well", csv("P-1")).await;
    assert_eq!(paths(&refused), ["rows[2].plate"]);
    assert_eq!(plates_of(&lab, csv("p1")).await, json!(["p1"]));
    for (column, cell) in [
        ("name", "P-1"),
        ("barcode", "b1"),
        ("number", "7"),
        ("id", "p1"),
    ] {
        assert_eq!(
            plates_of(&lab, by(column, cell)).await,
            json!(["p1"]),
            "{column}"
        );
    }
    let unknown = import(&lab, "well", by("number", "9")).await;
    assert_eq!(paths(&unknown), ["rows[2].plate"]);
    assert!(unknown.text.contains("has the number"), "{}", unknown.text);
    // A key is no name.
    let key = import(&lab, "well", by("name", "p1")).await;
    assert_eq!(paths(&key), ["rows[2].plate"]);
    for (column, wanted) in [
        ("plate", "note"),
        ("plate", "missing"),
        ("position", "name"),
        ("x", "y"),
    ] {
        let lookups = json!({ column: wanted }).to_string();
        let refused = import(&lab, "well", csv("P-1").field("lookups", &lookups)).await;
        assert_eq!(paths(&refused), [format!("lookups.{column}")], "{wanted}");
    }
    let shape = import(&lab, "well", csv("P-1").field("lookups", "[1]")).await;
    let problem = ("value_error".to_owned(), "body.lookups".to_owned());
    assert_eq!(shape.problems(), [problem]);
}

#[tokio::test]
async fn a_reference_can_be_a_part_of_the_key() {
    let lab = lab_with_wells().await;
    let lookups = json!({ "plate": "name" }).to_string();
    let upsert = async |csv: &str| {
        let form = file("upsert", csv)
            .field("key", "plate")
            .field("key", "position")
            .field("lookups", &lookups);
        import(&lab, "well", form).await.json(200)
    };
    upsert("plate,position,od\nP-1,A1,1\nP-2,A1,2\n").await;
    let again = upsert("plate,position,od\nP-2,A1,3\nP-2,A2,4\n").await;
    assert_eq!(
        (&again["created"], &again["updated"]),
        (&json!(1), &json!(1))
    );
    let rows = lab
        .rows("well", json!({ "plate": "p2", "position": "A1" }))
        .await;
    assert_eq!(rows[0]["od"], 3.0);
}

#[tokio::test]
async fn blank_cells_change_nothing_in_upserts_unless_they_are_null() {
    let lab = lab().await;
    let volume = async || lab.column("sample", "volume").await[0].clone();
    let upsert = |csv: &str| file("upsert", csv).field("key", "name");
    lab.insert("sample", json!([{ "name": "A", "volume": 1, "note": "x" }]))
        .await;
    let csv = "name,volume,note\nA,,y\n";
    let kept = import(&lab, "sample", upsert(csv)).await.json(200);
    assert_eq!((volume().await, &kept["updated"]), (json!(1), &json!(1)));
    import(&lab, "sample", upsert(csv).field("blank", "null"))
        .await
        .json(200);
    assert_eq!(volume().await, Value::Null);
    assert_eq!(lab.column("sample", "note").await, ["y"]);
    // A row that is created, and a blank cell that others of the column are not.
    let csv = "name,volume,note\nA,,\nB,2,\nC,,z\n";
    import(&lab, "sample", upsert(csv)).await.json(200);
    let rows = lab.rows("sample", json!({ "name": "C" })).await;
    assert_eq!(
        (&rows[0]["volume"], &rows[0]["note"]),
        (&Value::Null, &json!("z"))
    );
    let key = import(&lab, "sample", upsert("name,volume\n,2\n")).await;
    assert_eq!(paths(&key), ["rows[2].name"]);
    let other = import(&lab, "sample", upsert(csv).field("blank", "skip")).await;
    assert_eq!(
        other.problems(),
        [("enum".to_owned(), "body.blank".to_owned())]
    );
}

#[tokio::test]
async fn blank_cells_of_an_insert_are_null_unless_the_default_is_to_hold() {
    let lab = lab().await;
    let column = json!({ "name": "unit", "data_type": "string", "default": "ml" });
    let name = json!({ "name": "name", "data_type": "string" });
    let columns = json!([name, column]);
    lab.define(
        "stock",
        json!({ "semantic_category": "curated", "columns": columns }),
    )
    .await;
    let csv = "name,unit\na,\n";
    import(&lab, "stock", file("insert", csv)).await.json(200);
    assert_eq!(lab.column("stock", "unit").await, [Value::Null]);
    let kept = file("insert", &csv.replace("a,", "b,")).field("blank", "keep");
    import(&lab, "stock", kept).await.json(200);
    let rows = lab.rows("stock", json!({ "name": "b" })).await;
    assert_eq!(rows[0]["unit"], "ml");
}

#[tokio::test]
async fn a_header_of_another_unit_than_its_column_is_a_problem_until_the_column_is_chosen() {
    let lab = lab().await;
    let column = json!({ "name": "volume", "data_type": "float", "unit": "uL" });
    let name = json!({ "name": "name", "data_type": "string" });
    let definition = json!({ "semantic_category": "curated", "columns": [name, column] });
    lab.define("stock", definition).await;
    for csv in [
        "name,Volume (x1000 µl)\na,1\n",
        "name,Volume (ml)\na,1\n",
        "name,Volume\n,mL\na,1\nb,2\n",
    ] {
        let refused = import(&lab, "stock", file("insert", csv)).await.json(400);
        let problem = &refused["errors"][0];
        assert_eq!(problem["code"], "doubtful_reading", "{csv}");
        let header = csv.split(['\n', ',']).nth(1).unwrap();
        assert_eq!(problem["path"], format!("columns.{header}"));
        let choice = json!({ header: "volume" }).to_string();
        let chosen = file("insert", csv).field("columns", &choice);
        import(&lab, "stock", chosen).await.json(200);
    }
    let same = file("insert", "name,Volume [\u{b5}l]\nc,3\n");
    import(&lab, "stock", same).await.json(200);
    let above = import(&lab, "stock", file("insert", ",mL\nname,Volume\na,1\n")).await;
    assert_eq!(paths(&above), ["columns.Volume"]);
    let volumes = lab.column("stock", "volume").await;
    assert_eq!(volumes, [1.0, 1.0, 1.0, 2.0, 3.0]);
}

#[tokio::test]
async fn matched_rows_can_be_filled_only() {
    let lab = lab().await;
    lab.insert("sample", json!([{ "name": "A", "volume": 1 }]))
        .await;
    let form = file("upsert", "name,volume,note\nA,2,new\n").field("key", "name");
    let filled = import(&lab, "sample", form.field("on_match", "fill_missing")).await;
    assert_eq!(filled.json(200)["updated"], 1);
    let rows = lab.rows("sample", json!({})).await;
    assert_eq!(
        (&rows[0]["volume"], &rows[0]["note"]),
        (&json!(1), &json!("new"))
    );
}

#[tokio::test]
async fn an_export_can_be_imported() {
    let lab = lab_with_wells().await;
    lab.insert(
        "well",
        json!([
            { "plate": "p1", "sample": "s1", "position": "A1", "od": 0.1, "measured_on": "2026-03-01" },
            { "plate": "p2", "position": "=\"x\",\n;", "od": 1e300 },
        ]),
    )
    .await;
    let before = lab.rows("well", json!({})).await;
    // The first row of a text is its second line.
    for (format, first) in [("csv", "rows[2].id"), ("parquet", "rows[1].id")] {
        let path = format!("/api/v1/tables/well/export?format={format}");
        let export = lab.client.request(Method::GET, &path).send().await;
        let export = export.unwrap().bytes().await.unwrap();
        let form = || Form::new().file("well", &export);
        let dry = form().field("mode", "insert").field("dry_run", "true");
        assert_eq!(
            paths(&import(&lab, "well", dry).await)[0],
            first,
            "{format}"
        );
        let imported = import(&lab, "well", form().field("mode", "upsert"))
            .await
            .json(200);
        let counts = (&imported["created"], &imported["updated"]);
        assert_eq!(counts, (&json!(0), &json!(2)), "{format}");
        let after = lab.rows("well", json!({})).await;
        for (before, after) in before.iter().zip(after) {
            for name in [
                "id",
                "plate",
                "sample",
                "position",
                "od",
                "measured_on",
                "created_at",
            ] {
                assert_eq!(before[name], after[name], "{format} {name}");
            }
        }
    }
}

#[tokio::test]
async fn a_problem_of_uniqueness_names_the_line() {
    let lab = lab_with_wells().await;
    let twice = import(&lab, "sample", file("insert", "name\nx\n\ny\nx\nx\n")).await;
    assert_eq!(paths(&twice), ["rows[5].name", "rows[6].name"]);
    assert!(
        twice.text.contains("rows[2] has the same value"),
        "{}",
        twice.text
    );
    let stored = import(&lab, "sample", file("insert", "name\nnew\nbeta\n")).await;
    assert_eq!(paths(&stored), ["rows[3].name"]);
    assert!(stored.text.contains("unique_violation"), "{}", stored.text);
    let key = import(&lab, "sample", file("insert", "id,name\nq,new\ns1,newer\n")).await;
    assert_eq!(paths(&key), ["rows[3].id"]);
    let number = import(&lab, "plate", file("insert", "name,number\nP-3,9\nP-4,8\n")).await;
    assert_eq!(paths(&number), ["rows[3].number"]);
    let upsert = file("upsert", "name,barcode\nP-1,b9\nP-2,b1\nP-5,b9\n").field("key", "name");
    assert_eq!(
        paths(&import(&lab, "plate", upsert).await),
        ["rows[4].barcode"]
    );
    let matched = file("upsert", "name,barcode\nP-2,b1\n").field("key", "name");
    assert_eq!(
        paths(&import(&lab, "plate", matched).await),
        ["rows[2].barcode"]
    );
    lab.insert("well", json!([{ "plate": "p1", "position": "A1" }]))
        .await;
    let group = import(
        &lab,
        "well",
        file("insert", "plate,position\np2,A1\np1,A1\n"),
    )
    .await;
    assert_eq!(paths(&group), ["rows[3]"]);
    // A value that holds the sign between values, and one that is given by default.
    let comma = "plate,position\np1,\"A, 1\"\n";
    import(&lab, "well", file("insert", comma)).await.json(200);
    assert_eq!(
        paths(&import(&lab, "well", file("insert", comma)).await),
        ["rows[2]"]
    );
}

#[tokio::test]
async fn lines_are_named_for_values_of_every_type() {
    let lab = lab().await;
    for (data_type, first, second) in [
        ("float", "0.1", "1e-1"),
        ("float", "1e300", "1E300"),
        ("boolean", "true", "TRUE"),
        ("date", "2026-03-01", "2026-03-01"),
        (
            "datetime",
            "2026-03-01T12:00:00.25Z",
            "2026-03-01T13:00:00.25+01:00",
        ),
        (
            "uuid",
            "0199d6a0-0000-7000-8000-000000000000",
            "0199D6A0-0000-7000-8000-000000000000",
        ),
        ("text", "(a)=(b) already exists.", "(a)=(b) already exists."),
    ] {
        let column = json!({ "name": "value", "data_type": data_type, "is_unique": true });
        let definition = json!({ "semantic_category": "curated", "columns": [column] });
        lab.define("thing", definition).await;
        import(&lab, "thing", file("insert", &format!("value\n{first}\n")))
            .await
            .json(200);
        let again = import(
            &lab,
            "thing",
            file("insert", &format!("value\n\n{second}\n")),
        )
        .await;
        assert_eq!(
            paths(&again),
            ["rows[3].value"],
            "{data_type}: {}",
            again.text
        );
        let path = "/api/v1/tables/thing?force=true";
        assert_eq!(lab.client.delete(path).await.status, 204);
    }
}

async fn files(lab: &OnPostgres) -> Vec<Value> {
    let files = lab.client.get("/api/v1/files").await.json(200);
    files.as_array().unwrap().clone()
}

#[tokio::test]
async fn the_file_is_stored_as_one_of_the_execution() {
    let lab = lab().await;
    let csv = "name,volume\nA,1\n";
    let imported = import(&lab, "sample", file("insert", csv)).await.json(200);
    let execution = imported["job_execution_id"].as_str().unwrap();
    let changes = format!("/api/v1/job-executions/{execution}/changes");
    let changes = lab.client.get(&changes).await.json(200);
    let stored = json!([{ "id": imported["file_id"], "file_name": "rows.csv" }]);
    assert_eq!(changes["files"], stored);
    let id = imported["file_id"].as_str().unwrap();
    let file_path = format!("/api/v1/files/{id}");
    let stored = lab.client.get(&file_path).await.json(200);
    assert_eq!(stored["job_execution_id"], execution);
    let content = lab.client.get(&format!("{file_path}/content")).await;
    assert_eq!(content.json(200)["text_preview"], csv);
    let path = format!("/api/v1/job-executions/{execution}");
    let run = lab.client.get(&path).await.json(200);
    assert_eq!(
        (&run["job_name"], &run["status"]),
        (&json!("Import"), &json!("completed"))
    );
    let named = file("insert", "name\nB\n").field("job_name", "Plates of March");
    let named = import(&lab, "sample", named).await.json(200);
    let path = format!(
        "/api/v1/job-executions/{}",
        named["job_execution_id"].as_str().unwrap()
    );
    assert_eq!(
        lab.client.get(&path).await.json(200)["job_name"],
        "Plates of March"
    );
    let long = file("insert", "name\nC\n").field("job_name", &"j".repeat(1_000));
    assert_eq!(paths(&import(&lab, "sample", long).await), ["job_name"]);
}

#[tokio::test]
async fn neither_a_dry_run_nor_a_refused_import_stores_the_file() {
    let lab = lab().await;
    let dry = file("insert", "name\nA\n").field("dry_run", "true");
    let dry = import(&lab, "sample", dry).await.json(200);
    assert_eq!(
        (&dry["file_id"], &dry["job_execution_id"]),
        (&Value::Null, &Value::Null)
    );
    // Refused while it is read, before it is written, and by the database.
    for csv in [
        "name,volume\nA,x\n",
        "name,parent\nA,nobody\n",
        "name\nA\nA\n",
    ] {
        import(&lab, "sample", file("insert", csv)).await.json(400);
    }
    assert!(files(&lab).await.is_empty());
    import(&lab, "sample", file("insert", "name\nA\n"))
        .await
        .json(200);
    assert_eq!(files(&lab).await.len(), 1);
}
