//! `LABDATA_STORAGE_QUOTA`: files of an organization take no more.

use futures::stream;
use labdata_domain::storage::StorageQuota;
use serde_json::json;

use super::{Form, Lab, PATH, id, instrument, signed_upload::assert_refused};

async fn lab() -> Lab {
    Lab::with_quota(StorageQuota::of_bytes(1_000_000)).await
}

fn form(lab: &Lab, name: &str, length: usize) -> Form {
    Form::new()
        .field("instrument_id", &lab.instrument)
        .file(name, &vec![b'x'; length])
}

/// A body whose length is not announced.
fn chunked(length: usize) -> reqwest::Body {
    let chunks = std::iter::repeat_n(vec![b'x'; 1000], length / 1000).map(Ok::<_, std::io::Error>);
    reqwest::Body::wrap_stream(stream::iter(chunks))
}

#[tokio::test]
async fn a_file_that_is_only_looked_at_needs_room_while_it_is_here() {
    let lab = lab().await;
    let stored = form(&lab, "a.csv", 600_000).post(&lab.client).await;
    stored.json(200);
    let looked_at = async |rows: usize| {
        let form = Form::new().file("b.csv", &b"1\n".repeat(rows));
        form.post_to(&lab.client, "/api/v1/tools/preview-table")
            .await
    };
    let refused = looked_at(200_001).await.detail(507);
    assert!(refused.contains("LABDATA_STORAGE_QUOTA"), "{refused}");
    looked_at(150_000).await.json(200);
    assert_eq!(lab.stored(), 1);
}

#[tokio::test]
async fn uploads_over_the_quota_are_507_until_files_are_deleted() {
    let lab = lab().await;
    let first = form(&lab, "a.csv", 600_000).post(&lab.client).await;
    let first = first.json(200);
    let refused = form(&lab, "b.csv", 400_001).post(&lab.client).await;
    assert_eq!(
        refused.detail(507),
        "this organization stores 600000 of 1000000 bytes, and 400001 more do not fit \
         (LABDATA_STORAGE_QUOTA); delete files, or ask your operator; GET /api/v1/files/usage shows what \
         takes them"
    );
    let begun = lab.begin("c.csv").await;
    let refused = lab.put(&begun, vec![b'x'; 400_001]).await;
    assert_refused(&refused, 507, "InsufficientStorage");
    assert_refused(
        &lab.put(&begun, chunked(500_000)).await,
        507,
        "InsufficientStorage",
    );
    assert_eq!(lab.stored(), 1, "nothing of them is left");

    // To the byte; from then on no URL is given out.
    assert_eq!(lab.put(&begun, vec![b'x'; 400_000]).await.status, 200);
    let upload = format!("{PATH}/upload-url");
    let body = json!({ "file_name": "d.csv", "instrument_id": lab.instrument });
    lab.client.post(&upload, &body).await.detail(507);
    lab.confirm(&begun).await.json(200);
    let usage = lab.client.get("/api/v1/files/usage").await.json(200);
    let kinds = [
        "files",
        "datasets",
        "models",
        "annotations",
        "logs",
        "responses",
        "history",
        "trash",
    ];
    let kinds = kinds.map(|kind| json!({ "kind": kind, "bytes": 0 }));
    let mut expected = json!({ "used_bytes": 1_000_000, "quota_bytes": 1_000_000, "kinds": kinds });
    expected["kinds"][0]["bytes"] = 1_000_000.into();
    assert_eq!(usage, expected);

    let path = format!("{PATH}/{}", id(&first));
    assert_eq!(lab.client.delete(&path).await.status, 204);
    // It counts until it is purged.
    form(&lab, "b.csv", 600_000)
        .post(&lab.client)
        .await
        .detail(507);
    let trash = lab.client.get("/api/v1/trash").await.json(200);
    assert_eq!(trash[0]["size_bytes"], 600_000);
    let usage = lab.client.get("/api/v1/files/usage").await.json(200);
    assert_eq!(usage["used_bytes"], 1_000_000);
    let kinds = usage["kinds"].as_array().unwrap();
    assert!(kinds.contains(&json!({ "kind": "trash", "bytes": 600_000 })));
    let entry = format!("/api/v1/trash/{}", trash[0]["id"].as_str().unwrap());
    assert_eq!(lab.client.delete(&entry).await.status, 204);
    form(&lab, "b.csv", 600_000)
        .post(&lab.client)
        .await
        .json(200);
}

#[tokio::test]
async fn the_quota_of_one_organization_is_not_that_of_another() {
    let lab = lab().await;
    form(&lab, "a.csv", 1_000_000)
        .post(&lab.client)
        .await
        .json(200);
    let stranger = lab.server.stranger().await;
    let theirs = Form::new()
        .field("instrument_id", &instrument(&stranger, "theirs").await)
        .file("a.csv", &[b'x'; 1000]);
    theirs.post(&stranger).await.json(200);
}

#[tokio::test]
async fn racing_uploads_do_not_pass_the_quota_together() {
    let lab = lab().await;
    let mut begun = Vec::new();
    for number in 0..6 {
        begun.push(lab.begin(&format!("{number}.csv")).await);
    }
    let lab = &lab;
    let puts = begun.iter().enumerate().map(|(number, begun)| async move {
        let body = if number.is_multiple_of(2) {
            vec![b'x'; 300_000].into()
        } else {
            chunked(300_000)
        };
        lab.put(begun, body).await.status.as_u16()
    });
    let statuses = futures::future::join_all(puts).await;
    let stored = statuses.iter().filter(|status| **status == 200).count();
    assert!(stored <= 3, "{statuses:?}");
    assert!(
        statuses.iter().all(|status| matches!(status, 200 | 507)),
        "{statuses:?}"
    );
    assert_eq!(lab.stored(), stored);
}

#[tokio::test]
async fn a_confirmation_that_would_pass_the_quota_discards_its_file() {
    let lab = lab().await;
    let (first, second) = (lab.begin("a.csv").await, lab.begin("b.csv").await);
    // As another server may have taken it at the same time.
    let services = &lab.server.services;
    for begun in [&first, &second] {
        let url = begun["upload_url"].as_str().unwrap();
        let object = url.split('?').next().unwrap().rsplit('/').next().unwrap();
        let bytes = bytes::Bytes::from(vec![b'x'; 600_000]);
        let body = Box::pin(stream::iter([Ok(bytes)]));
        services
            .blobs
            .put_new(
                lab.server.organization,
                object.parse().unwrap(),
                body,
                1_000_000,
            )
            .await
            .unwrap();
    }
    lab.confirm(&first).await.json(200);
    let refused = lab.confirm(&second).await.detail(507);
    assert!(refused.contains("600000 of 1000000"), "{refused}");
    assert_eq!(lab.stored(), 1);
    lab.confirm(&second).await.detail(404);
}
