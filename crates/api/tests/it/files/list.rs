//! `GET /api/v1/files`

use time::Duration;

use super::{Lab, PATH, instrument};

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
