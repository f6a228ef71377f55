//! `/api/v1/images/{file_id}/annotations`

use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures::TryStreamExt as _;
use labdata_domain::{
    models::{ProblemType, TrainingResult},
    people::scope::Scope,
};
use labdata_postgres::DatabaseSettings;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    files::Form,
    models::trained::segmentation,
    on_postgres::OnPostgres,
    server::{Client, TestServer, send},
};

const UNKNOWN: &str = "0191d5a4-0000-7000-8000-000000000000";

/// A PNG of that size: white where `is_white` says so, and transparent elsewhere.
fn png(width: u32, height: u32, is_white: impl Fn(u32, u32) -> bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::GrayscaleAlpha);
    let mut writer = encoder.write_header().unwrap();
    let pixels = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
    let pixels = pixels.flat_map(|(x, y)| if is_white(x, y) { [255, 255] } else { [255, 0] });
    let pixels: Vec<u8> = pixels.collect();
    writer.write_image_data(&pixels).unwrap();
    writer.finish().unwrap();
    bytes
}

/// A mask of an image of 10 by 8 pixels: a square of that side at (2, 1).
fn mask(side: u32) -> String {
    let in_square = |x, y| (2..2 + side).contains(&x) && (1..=side).contains(&y);
    STANDARD.encode(png(10, 8, in_square))
}

async fn uploaded(client: &Client, name: &str, bytes: &[u8]) -> String {
    let listed = client.get("/api/v1/instruments").await.json(200);
    let camera = if let Some(id) = listed[0]["id"].as_str() {
        id.to_owned()
    } else {
        let camera = json!({"name": "camera"});
        let made = client.post("/api/v1/instruments", &camera);
        made.await.json(200)["id"].as_str().unwrap().to_owned()
    };
    let form = Form::new()
        .field("instrument_id", &camera)
        .file(name, bytes);
    let file = form.post(client).await.json(200);
    file["file_id"].as_str().unwrap().to_owned()
}

/// An image of 10 by 8 pixels; returns the path of its annotations.
async fn image(client: &Client, name: &str) -> String {
    let file = uploaded(client, name, &png(10, 8, |_, _| true)).await;
    format!("/api/v1/images/{file}/annotations")
}

fn file_of(path: &str) -> &str {
    path.split('/').nth(4).unwrap()
}

async fn execution(client: &Client) -> String {
    let opened = client.post("/api/v1/job-executions", &json!({})).await;
    let opened = opened.json(200);
    opened["job_execution_id"].as_str().unwrap().to_owned()
}

/// The story of an image on a server, whose store may be any.
async fn story(server: &TestServer, client: &Client) {
    let path = image(client, "a.png").await;
    assert_eq!(client.get(&path).await.json(200), json!([]));
    let body = json!({"annotations": [
        {"mask": mask(2), "label": "cell", "width": 10, "height": 8},
        {"mask": mask(4), "label": " nucleus ", "is_human_vetted": true, "file_id": file_of(&path)},
    ]});
    let saved = client.post(&path, &body).await.json(200);
    let id = saved[0]["id"].as_str().unwrap();
    let url = saved[0]["mask_url"].as_str().unwrap();
    assert!(url.starts_with("http"), "{url}");
    assert_eq!(
        saved[0],
        json!({
            "id": id, "label": "cell", "mask_url": url, "width": 10, "height": 8,
            "is_human_vetted": false, "foreground_fraction": 0.05,
            "bbox": {"x": 2, "y": 1, "width": 2, "height": 2},
            "user": {"id": server.user.to_string(), "name": saved[0]["user"]["name"], "image_url": null},
        })
    );
    assert_eq!(saved[1]["label"], "nucleus");
    assert_eq!(saved[1]["foreground_fraction"], 0.2);

    // Saving adds, and the list is in the order of saving.
    let body = json!({"annotations": [{"mask": mask(1), "label": "cell"}]});
    let more = client.post(&path, &body).await.json(200);
    let ids = |list: &Value| -> Vec<Value> {
        list.as_array()
            .unwrap()
            .iter()
            .map(|one| one["id"].clone())
            .collect()
    };
    let listed = client.get(&path).await.json(200);
    assert_eq!(ids(&listed), [ids(&saved), ids(&more)].concat());

    // The mask is stored as it was sent.
    let file = file_of(&path).parse().unwrap();
    let stored = server.services.annotations.list(server.organization, file);
    let object = stored.await.unwrap()[1].object;
    let body = server
        .services
        .blobs
        .read(server.organization, object, None);
    let chunks: Vec<_> = body.await.unwrap().bytes.try_collect().await.unwrap();
    assert_eq!(STANDARD.encode(chunks.concat()), mask(4));
    let usage = client.get("/api/v1/files/usage").await.json(200);
    let kinds = usage["kinds"].as_array().unwrap();
    let of_kind = |kind| kinds.iter().find(|it| it["kind"] == kind).unwrap()["bytes"].clone();
    let sizes = [1, 2, 4].map(|side| STANDARD.decode(mask(side)).unwrap().len());
    assert_eq!(of_kind("annotations"), sizes.iter().sum::<usize>());

    let one = format!("{path}/{id}");
    let change = json!({"is_human_vetted": true, "label": "vesicle"});
    let changed = client.patch(&one, &change).await.json(200);
    assert_eq!(
        (&changed["label"], &changed["is_human_vetted"]),
        (&json!("vesicle"), &json!(true))
    );
    assert_eq!(client.delete(&one).await.status, 204);
    client.delete(&one).await.detail(404);
    client.patch(&one, &change).await.detail(404);
    assert_eq!(
        client.get(&path).await.json(200).as_array().unwrap().len(),
        2
    );

    let file = format!("/api/v1/files/{}", file_of(&path));
    assert_eq!(client.delete(&file).await.status, 204);
    assert_eq!(client.get(&path).await.detail(404), "file not found");
    let left = server
        .services
        .annotations
        .list(server.organization, file_of(&path).parse().unwrap());
    assert_eq!(left.await.unwrap(), []);
}

#[tokio::test]
async fn masks_are_saved_listed_vetted_and_deleted() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    story(&server, &client).await;
}

#[tokio::test]
async fn masks_are_saved_in_a_database() {
    let lab = OnPostgres::empty(DatabaseSettings::default()).await;
    story(&lab.server, &lab.client).await;
    taken_by_a_revert(&lab.client).await;
}

#[tokio::test]
async fn nothing_is_saved_if_one_mask_is_not_accepted() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let path = image(&client, "a.png").await;
    let good = json!({"mask": mask(2), "label": "cell"});
    let other = uploaded(&client, "b.png", &png(10, 8, |_, _| true)).await;
    let small = STANDARD.encode(png(9, 8, |_, _| true));
    let empty = STANDARD.encode(png(10, 8, |_, _| false));
    for (bad, says) in [
        (json!({"mask": "?", "label": "cell"}), "not base64"),
        (json!({"mask": "YWJj", "label": "cell"}), "no readable PNG"),
        (
            json!({"mask": small, "label": "cell"}),
            "9 × 8 pixels, and the image 10 × 8",
        ),
        (json!({"mask": empty, "label": "cell"}), "empty"),
        (
            json!({"mask": mask(2), "label": "cell", "width": 11}),
            "10 × 8",
        ),
        (
            json!({"mask": mask(2), "label": "cell", "file_id": other}),
            &*other,
        ),
        (json!({"mask": mask(2), "label": "  "}), "label"),
    ] {
        let body = json!({"annotations": [good, bad]});
        let detail = client.post(&path, &body).await.detail(400);
        assert!(
            detail.starts_with("annotations[1]") && detail.contains(says),
            "{detail}"
        );
    }
    assert_eq!(client.get(&path).await.json(200), json!([]));
    let body = json!({"annotations": []});
    assert_eq!(
        client.post(&path, &body).await.problems(),
        [("too_short".to_owned(), "body.annotations".to_owned())]
    );
    // Far more values than masks: the body is not read at all.
    let body = json!({"annotations": vec![0; 50_000]});
    assert_eq!(
        client.post(&path, &body).await.problems(),
        [("value_error".to_owned(), "body".to_owned())]
    );
}

#[tokio::test]
async fn annotations_are_of_images_with_a_bounded_number_of_pixels() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let sides = [10_001_u32, 10_000].map(u32::to_be_bytes).concat();
    let head = [
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".as_slice(),
        &sides,
        &[8, 6, 0, 0, 0],
    ]
    .concat();
    for (name, bytes, says) in [
        ("a.csv", b"a,b\n1,2\n".as_slice(), "no image"),
        ("large.png", &head, "10001 × 10000"),
    ] {
        let file = uploaded(&client, name, bytes).await;
        let path = format!("/api/v1/images/{file}/annotations");
        let body = json!({"annotations": [{"mask": mask(2), "label": "cell"}]});
        let refused = client.post(&path, &body).await;
        assert_eq!(refused.code(400), "not_an_image");
        assert!(refused.detail(400).contains(says));
        assert_eq!(client.get(&path).await.code(400), "not_an_image");
    }
    let path = format!("/api/v1/images/{UNKNOWN}/annotations");
    assert_eq!(client.get(&path).await.detail(404), "file not found");
}

#[tokio::test]
async fn another_organization_does_not_see_annotations() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let path = image(&client, "a.png").await;
    let body = json!({"annotations": [{"mask": mask(2), "label": "cell"}]});
    let saved = client.post(&path, &body).await.json(200);
    let one = format!("{path}/{}", saved[0]["id"].as_str().unwrap());
    let stranger = server.stranger().await;
    stranger.get(&path).await.detail(404);
    stranger.post(&path, &body).await.detail(404);
    stranger.delete(&one).await.detail(404);
    let reader = server.client(&[Scope::Read]).await;
    reader.post(&path, &body).await.detail(403);
    assert_eq!(
        reader.get(&path).await.json(200).as_array().unwrap().len(),
        1
    );
}

async fn taken_by_a_revert(client: &Client) {
    let path = image(client, "reverted.png").await;
    let run = execution(client).await;
    let own = json!({"mask": mask(2), "label": "cell"});
    let body = json!({"annotations": [own, own], "job_execution_id": run});
    client.post(&path, &body).await.json(200);
    client
        .post(&path, &json!({"annotations": [own]}))
        .await
        .json(200);
    let revert = format!("/api/v1/job-executions/{run}/revert");
    for restore in [false, true] {
        let promised = client
            .post(&revert, &json!({"dry_run": true, "restore": restore}))
            .await;
        assert_eq!(promised.json(200)["annotations_deleted_count"], 2);
    }
    assert_eq!(
        client.get(&path).await.json(200).as_array().unwrap().len(),
        3
    );
    let reverted = client.post(&revert, &json!({})).await.json(200);
    assert_eq!(reverted["annotations_deleted_count"], 2);
    assert_eq!(reverted["deleted_count"], 0);
    assert_eq!(
        client.get(&path).await.json(200).as_array().unwrap().len(),
        1
    );
    let again = client.post(&revert, &json!({})).await.json(200);
    assert_eq!(again.get("annotations_deleted_count"), None);

    let close = json!({"status": "completed"});
    let execution = format!("/api/v1/job-executions/{run}");
    client.patch(&execution, &close).await.json(200);
    assert_eq!(
        client.post(&path, &body).await.code(400),
        "execution_closed"
    );
    let body = json!({"annotations": [own], "job_execution_id": UNKNOWN});
    assert_eq!(
        client.post(&path, &body).await.detail(404),
        "execution not found"
    );
}

#[tokio::test]
async fn a_revert_takes_the_masks_of_its_execution() {
    let server = TestServer::start().await;
    taken_by_a_revert(&server.admin().await).await;
}

#[tokio::test]
async fn a_repeated_request_saves_once() {
    let lab = OnPostgres::empty(DatabaseSettings::default()).await;
    let path = image(&lab.client, "a.png").await;
    let body = json!({"annotations": [{"mask": mask(2), "label": "cell"}]});
    let post = async || {
        let request = lab.client.request(Method::POST, &path);
        send(request.header("idempotency-key", "once").json(&body)).await
    };
    let first = post().await.json(200);
    let second = post().await;
    assert_eq!(second.header("idempotent-replayed"), Some("true"));
    assert_eq!(second.json(200), first);
    assert_eq!(
        lab.client
            .get(&path)
            .await
            .json(200)
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn vetted_masks_of_a_label_become_a_dataset() {
    let lab = OnPostgres::empty(DatabaseSettings::default()).await;
    let client = &lab.client;
    let body = json!({"name": "cells", "label": "cell", "annotated": true});
    let refused = client.post("/api/v1/datasets", &body).await;
    assert_eq!(refused.code(400), "invalid_dataset");
    let mut images = Vec::new();
    for name in ["a.png", "b.png"] {
        let path = image(client, name).await;
        let annotations = json!({"annotations": [
            {"mask": mask(1), "label": "cell", "is_human_vetted": true},
            {"mask": mask(3), "label": "cell", "is_human_vetted": true},
            {"mask": mask(5), "label": "cell"},
            {"mask": mask(6), "label": "dust", "is_human_vetted": true},
        ]});
        client.post(&path, &annotations).await.json(200);
        images.push(file_of(&path).to_owned());
    }
    let dataset = client.post("/api/v1/datasets", &body).await.json(200);
    assert_eq!(dataset["label"], "cell");
    assert_eq!(
        (&dataset["query"], &dataset["file_id"]),
        (&Value::Null, &Value::Null)
    );
    let names = ["image", "mask"].map(|name| json!(name));
    let columns = dataset["columns"].as_array().unwrap();
    assert_eq!(
        [&columns[0]["name"], &columns[1]["name"]],
        [&names[0], &names[1]]
    );
    let path = format!("/api/v1/datasets/{}", dataset["id"].as_str().unwrap());
    assert_eq!(client.get(&path).await.json(200)["label"], "cell");
    let rows = client.get(&format!("{path}/preview")).await.json(200)["data"].clone();
    images.sort();
    assert_eq!(
        [&rows[0][0], &rows[1][0]],
        [&json!(images[0]), &json!(images[1])]
    );

    // The masks of an image became one: gray, a bit each.
    let object = rows[0][1].as_str().unwrap().parse().unwrap();
    let body = lab
        .server
        .services
        .blobs
        .read(lab.server.organization, object, None);
    let chunks: Vec<_> = body.await.unwrap().bytes.try_collect().await.unwrap();
    let mut reader = png::Decoder::new(std::io::Cursor::new(chunks.concat()))
        .read_info()
        .unwrap();
    assert_eq!(reader.info().color_type, png::ColorType::Grayscale);
    let mut bits = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut bits).unwrap();
    let square = [0b0011_1000, 0];
    let nothing = [0, 0];
    let rows = [
        nothing, square, square, square, nothing, nothing, nothing, nothing,
    ];
    assert_eq!(bits, rows.concat());
    let has_mask = lab
        .server
        .services
        .datasets
        .has_mask(lab.server.organization, object);
    assert!(has_mask.await.unwrap());

    for body in [
        json!({"name": "x", "label": "cell"}),
        json!({"name": "x", "annotated": true}),
        json!({"name": "x", "label": "cell", "annotated": true, "query": "select 1"}),
    ] {
        client.post("/api/v1/datasets", &body).await.json(422);
    }
}

#[tokio::test]
async fn predicted_masks_can_be_saved_as_they_are() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let result: TrainingResult = segmentation();
    assert_eq!(result.problem_type, ProblemType::SemanticSegmentation);
    server.trained_model("cells", result).await;
    let file = uploaded(&client, "pixel.png", &png(1, 1, |_, _| true)).await;
    let path = "/api/v1/ml-models/predict";
    let body =
        json!({"ml_model_name": "cells", "data": [{"image": file}], "pixel_threshold": 0.25});
    let predicted = client.post(path, &body).await.json(200);
    let annotation = &predicted["annotations"][0];
    assert_eq!(annotation["file_id"], file);
    assert_eq!(
        (&annotation["width"], &annotation["confidence"]),
        (&json!(1), &json!(0.75))
    );
    let saved = json!({"annotations": predicted["annotations"]});
    let annotations = format!("/api/v1/images/{file}/annotations");
    let saved = client.post(&annotations, &saved).await.json(200);
    assert_eq!(saved[0]["is_human_vetted"], false);
    assert_eq!(saved[0]["label"], annotation["label"]);

    let body = json!({"ml_model_name": "cells", "data": [{"image": file}], "min_confidence": 0.9});
    let predicted = client.post(path, &body).await.json(200);
    assert_eq!(predicted["annotations"], json!([]));
    let body = json!({"ml_model_name": "cells", "data": [{"image": file}], "pixel_threshold": 1.5,
                      "min_confidence": -1, "max_hole_pixels": -1});
    let mut problems = client.post(path, &body).await.problems();
    problems.sort();
    let problem = |kind: &str, field: &str| (kind.to_owned(), format!("body.{field}"));
    assert_eq!(
        problems,
        [
            problem("greater_than_equal", "max_hole_pixels"),
            problem("greater_than_equal", "min_confidence"),
            problem("less_than_equal", "pixel_threshold"),
        ]
    );
}

#[tokio::test]
async fn a_hundred_masks_are_saved_at_once_in_their_order() {
    let lab = OnPostgres::empty(DatabaseSettings::default()).await;
    let file = uploaded(&lab.client, "large.png", &png(200, 150, |_, _| false)).await;
    let path = format!("/api/v1/images/{file}/annotations");
    let annotations = (0..100).map(|number| {
        let column = STANDARD.encode(png(200, 150, |x, _| x == number));
        json!({"mask": column, "label": format!("column {number}")})
    });
    let body = json!({"annotations": annotations.collect::<Vec<Value>>()});
    let saved = lab.client.post(&path, &body).await.json(200);
    let listed = lab.client.get(&path).await.json(200);
    assert_eq!(listed.as_array().unwrap().len(), 100);
    for (number, (saved, listed)) in saved
        .as_array()
        .unwrap()
        .iter()
        .zip(listed.as_array().unwrap())
        .enumerate()
    {
        assert_eq!(saved["id"], listed["id"]);
        assert_eq!(saved["label"], format!("column {number}"));
        assert_eq!(
            saved["bbox"],
            json!({"x": number, "y": 0, "width": 1, "height": 150})
        );
    }
}
