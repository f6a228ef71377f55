//! Datasets of files.

use arrow_array::cast::AsArray;
use serde_json::json;

use super::dataset_lab::{DatasetLab, columns};

#[tokio::test]
async fn a_file_becomes_a_dataset() {
    let lab = DatasetLab::start().await;
    let text = "well;od;measured;note\r\nA1;0,25;2026-03-01;µl\r\nA2;;2026-03-02;\r\n";
    let latin: Vec<u8> = text
        .chars()
        .map(|letter| u8::try_from(u32::from(letter)).unwrap())
        .collect();
    let id = lab.upload("plate.CSV", latin).await;
    let dataset = lab.of_file(&id).await.json(200);
    let expected = [
        ("well", "text"),
        ("od", "float"),
        ("measured", "date"),
        ("note", "text"),
    ];
    assert_eq!(columns(&dataset), expected);
    assert_eq!(dataset["row_count"], 2);
    assert_eq!(dataset["file_id"], id.as_str());
    let rows = lab.rows(&dataset).await;
    let notes = rows[0].column(3).as_string::<i32>();
    assert_eq!(notes.iter().collect::<Vec<_>>(), [Some("µl"), None]);
    let path = format!("/api/v1/files/{id}");
    assert_eq!(lab.client.delete(&path).await.status, 204);
    assert_eq!(lab.rows(&dataset).await, rows, "it outlives its file");
}

#[tokio::test]
async fn tabs_separate_the_fields_of_a_tsv_file() {
    let lab = DatasetLab::start().await;
    let id = lab.upload("plate.tsv", "a,b\tc\n1,5\t2\n").await;
    let dataset = lab.of_file(&id).await.json(200);
    assert_eq!(columns(&dataset), [("a,b", "float"), ("c", "integer")]);
}

#[tokio::test]
async fn a_file_is_read_by_its_content() {
    let lab = DatasetLab::start().await;
    for name in ["plate.txt", "plate", "plate.xlsx", "plate.parquet"] {
        let id = lab.upload(name, "a;b\n1,5;x\n").await;
        let dataset = lab.of_file(&id).await.json(200);
        assert_eq!(columns(&dataset), [("a", "float"), ("b", "text")], "{name}");
    }
}

#[tokio::test]
async fn a_file_that_is_no_table_is_told_why() {
    let lab = DatasetLab::start().await;
    for (name, bytes, reason) in [
        ("empty.csv", b"\n\n".to_vec(), "the file is empty"),
        (
            "twice.csv",
            b"a,b,a\n1,2,3\n".to_vec(),
            "the same header \"a\"",
        ),
        (
            "long.csv",
            b"a,b\n1,2\n\n3,4,5\n".to_vec(),
            "line 4 and those below it are of another form",
        ),
        (
            "doubt.csv",
            b"a;b\n1.234;x\n".to_vec(),
            "may have decimals or groups of three digits",
        ),
        ("nul.csv", b"a,b\n1,\0\n".to_vec(), "neither text"),
        (
            "zip.csv",
            b"PK\x03\x04\x14\0\x06\0\x08\0\0\0!\0".to_vec(),
            "not an Excel workbook",
        ),
        (
            "wide.csv",
            b"a,".repeat(10_000),
            "10000 columns; 1600 is the most",
        ),
    ] {
        let detail = lab.refusal(name, bytes).await;
        assert!(detail.contains(reason), "{name}: {detail}");
    }
    assert_eq!(
        lab.client.get("/api/v1/datasets").await.json(200),
        json!([])
    );
}

#[tokio::test]
async fn a_downloaded_dataset_can_be_uploaded_again() {
    let lab = DatasetLab::start().await;
    let query = "select n, n / 2.0 as half, 'row ' || n as name, date '2026-03-01' + n as day \
                 from generate_series(1, 20000) as n";
    let dataset = lab.of_query(query).await.json(200);
    let bytes = lab.bytes(&dataset).await;
    let id = lab.upload("copy.parquet", bytes).await;
    let copy = lab.of_file(&id).await.json(200);
    assert_eq!(copy["columns"], dataset["columns"]);
    assert_eq!(lab.rows(&copy).await, lab.rows(&dataset).await);
}

#[tokio::test]
async fn a_parquet_file_that_is_cut_is_refused() {
    let lab = DatasetLab::start().await;
    let dataset = lab.of_query("select n from generate_series(1, 9000) as n");
    let bytes = lab.bytes(&dataset.await.json(200)).await;
    let (start, end) = (&bytes[..500], &bytes[bytes.len() - 300..]);
    for cut in [start.to_vec(), [start, end].concat()] {
        let detail = lab.refusal("cut.parquet", cut).await;
        assert!(
            detail.contains("damaged") || detail.contains("not Parquet"),
            "{detail}"
        );
    }
}

#[tokio::test]
async fn a_file_must_be_there() {
    let lab = DatasetLab::start().await;
    let unknown = lab.of_file("0191d5a4-0000-7000-8000-000000000000").await;
    assert_eq!(unknown.detail(404), "file not found");
    let body = json!({ "name": "reader" });
    let instrument = lab.client.post("/api/v1/instruments", &body).await;
    let body = json!({ "file_name": "a.csv", "instrument_id": instrument.json(200)["id"] });
    let begun = lab.client.post("/api/v1/files/upload-url", &body).await;
    let begun = begun.json(200);
    let waiting = lab.of_file(begun["file_id"].as_str().unwrap()).await;
    assert_eq!(
        waiting.detail(400),
        "the upload of this file is not confirmed yet"
    );
}
