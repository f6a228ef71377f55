//! `GET /api/v1/files`

use time::Duration;

use super::{Form, Lab, PATH, instrument};

async fn names(lab: &Lab, query: &str) -> Vec<String> {
    let listed = lab.client.get(&format!("{PATH}{query}")).await.json(200);
    let name = |file: &serde_json::Value| file["original_path"].as_str().unwrap().to_owned();
    listed.as_array().unwrap().iter().map(name).collect()
}

async fn with(files: &[&str]) -> Lab {
    let lab = Lab::start().await;
    for name in files {
        lab.upload(name, b"x").await;
        lab.server.clock.advance(Duration::seconds(1));
    }
    lab
}

#[tokio::test]
async fn files_are_listed_newest_first_and_page_by_page() {
    let lab = with(&["a.csv", "b.csv", "c.csv", "d.csv", "e.csv"]).await;
    assert_eq!(
        names(&lab, "").await,
        ["e.csv", "d.csv", "c.csv", "b.csv", "a.csv"]
    );
    let first = lab
        .client
        .get(&format!("{PATH}?limit=2&extensions=csv"))
        .await;
    assert_eq!(first.json(200).as_array().unwrap().len(), 2);
    lab.upload("new.csv", b"x").await;
    let second = lab.client.get(&first.next().unwrap()).await;
    assert_eq!(second.json(200)[0]["file_name"], "c.csv");
    let third = lab.client.get(&second.next().unwrap()).await;
    assert_eq!(third.json(200)[0]["file_name"], "a.csv");
    assert_eq!(third.next(), None);
}

#[tokio::test]
async fn every_filter_narrows_the_list() {
    let lab = with(&["Plate_1.CSV", "plateX1.csv", "notes.txt", "100%.txt"]).await;
    let other = instrument(&lab.client, "other").await;
    let cases = [
        (String::new(), 4),
        ("?instrument_id=&extensions=&query=".to_owned(), 4),
        (format!("?instrument_id={}", lab.instrument), 4),
        (format!("?instrument_id={other}"), 0),
        ("?instrument_id=nonsense".to_owned(), 0),
        ("?extensions=csv".to_owned(), 2),
        ("?extensions=csv,.TXT".to_owned(), 4),
        ("?extensions=.Csv&query=plate_".to_owned(), 1),
        ("?query=PLATE".to_owned(), 2),
        ("?query=%25".to_owned(), 1),
        ("?query=_".to_owned(), 1),
        ("?query=%5C".to_owned(), 0),
        ("?query=%0a".to_owned(), 0),
        ("?query='%20OR%201=1".to_owned(), 0),
    ];
    for (query, expected) in cases {
        assert_eq!(names(&lab, &query).await.len(), expected, "{query}");
    }
}

#[tokio::test]
async fn parameters_out_of_shape_are_refused() {
    let lab = with(&[]).await;
    for (query, kind, place) in [
        ("?limit=0", "greater_than_equal", "query.limit"),
        ("?limit=1001", "less_than_equal", "query.limit"),
        ("?limit=x", "int_parsing", "query.limit"),
        ("?cursor=x", "value_error", "query.cursor"),
        ("?query=%00", "value_error", "query.query"),
    ] {
        let problems = lab.client.get(&format!("{PATH}{query}")).await.problems();
        assert_eq!(problems, [(kind.to_owned(), place.to_owned())], "{query}");
    }
}

#[tokio::test]
async fn files_of_another_organization_are_not_listed() {
    let lab = with(&["a.csv"]).await;
    let stranger = lab.server.stranger().await;
    let reply = stranger
        .get(&format!("{PATH}?instrument_id={}", lab.instrument))
        .await;
    assert_eq!(reply.json(200), serde_json::json!([]));
}

#[tokio::test]
async fn the_files_of_an_execution_are_listed() {
    let lab = with(&["captured.csv"]).await;
    for name in ["result.csv", "plot.png"] {
        let form = Form::new()
            .field("job_execution_id", &lab.execution)
            .file(name, b"x");
        form.post(&lab.client).await.json(200);
        lab.server.clock.advance(Duration::seconds(1));
    }
    let of_execution = format!("?job_execution_id={}", lab.execution);
    assert_eq!(names(&lab, &of_execution).await, ["plot.png", "result.csv"]);
    assert_eq!(
        names(&lab, &format!("{of_execution}&query=result")).await,
        ["result.csv"]
    );
    assert_eq!(names(&lab, "?job_execution_id=").await.len(), 3);
    for unknown in ["nonsense", "0191d5a4-0000-7000-8000-000000000000"] {
        let query = format!("?job_execution_id={unknown}");
        assert_eq!(names(&lab, &query).await, [""; 0]);
    }
    let stranger = lab.server.stranger().await;
    let reply = stranger.get(&format!("{PATH}{of_execution}")).await;
    assert_eq!(reply.json(200), serde_json::json!([]));
}

#[tokio::test]
async fn a_file_is_shown_by_its_id_as_the_list_shows_it() {
    let lab = with(&["plate 1.csv"]).await;
    let listed = lab.client.get(PATH).await.json(200)[0].clone();
    let path = format!("{PATH}/{}", listed["file_id"].as_str().unwrap());
    assert_eq!(lab.client.get(&path).await.json(200), listed);

    let request = serde_json::json!({"file_name": "b.csv", "instrument_id": lab.instrument});
    let awaited = lab
        .client
        .post(&format!("{PATH}/upload-url"), &request)
        .await
        .json(200);
    let path = format!("{PATH}/{}", awaited["file_id"].as_str().unwrap());
    lab.client.get(&path).await.detail(400);
}

#[tokio::test]
async fn a_program_says_that_it_synchronizes_an_instrument() {
    let lab = with(&["by hand.csv"]).await;
    let form = Form::new()
        .field("instrument_id", &lab.instrument)
        .field("source_type", "instrument_sync")
        .file("a.csv", b"x");
    let id = super::id(&form.post(&lab.client).await.json(200));
    let displayed = lab.client.get(&format!("{PATH}/{id}")).await.json(200);
    assert_eq!(displayed["source_type"], "instrument_sync");

    let url = format!("{PATH}/upload-url");
    let request = serde_json::json!({"file_name": "b.csv", "instrument_id": lab.instrument,
        "source_type": "instrument_sync"});
    lab.client.post(&url, &request).await.json(200);

    let refused = |source: &str, owner: (&str, &str)| {
        let request =
            serde_json::json!({"file_name": "c.csv", owner.0: owner.1, "source_type": source});
        let form = Form::new()
            .field(owner.0, owner.1)
            .field("source_type", source)
            .file("c.csv", b"x");
        (request, form)
    };
    for (source, owner, kind) in [
        ("manual_upload", ("instrument_id", &lab.instrument), "enum"),
        ("job_artifact", ("instrument_id", &lab.instrument), "enum"),
        (
            "instrument_sync",
            ("job_execution_id", &lab.execution),
            "value_error",
        ),
    ] {
        let (request, form) = refused(source, (owner.0, owner.1));
        let expected = [(kind.to_owned(), "body.source_type".to_owned())];
        assert_eq!(lab.client.post(&url, &request).await.problems(), expected);
        assert_eq!(form.post(&lab.client).await.problems(), expected);
    }
    assert_eq!(names(&lab, "").await, ["a.csv", "by hand.csv"]);
}
