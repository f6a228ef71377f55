//! `GET /api/v1/files/{file_id}/content` and `DELETE /api/v1/files/{file_id}`

use labdata_domain::people::scope::Scope;
use reqwest::Method;
use serde_json::json;

use super::{Lab, PATH};

#[tokio::test]
async fn content_has_a_url_and_the_start_of_the_text() {
    let lab = Lab::start().await;
    let id = lab
        .upload("Süd/plate.csv", "Well,µ\nA1,0.1\n".as_bytes())
        .await;
    let content = lab.content(&id).await;
    assert_eq!(
        content,
        json!({
            "file_id": id,
            "file_name": "plate.csv",
            "size_kilobytes": 1,
            "download_url": content["download_url"],
            "text_preview": "Well,µ\nA1,0.1\n",
            "preview_truncated": false,
            "preview_skipped_reason": null,
        })
    );
}

#[tokio::test]
async fn a_long_text_is_cut_at_a_character() {
    let lab = Lab::start().await;
    let id = lab
        .upload("long.txt", format!("x{}", "€".repeat(30_000)).as_bytes())
        .await;
    let content = lab.content(&id).await;
    assert_eq!(content["preview_truncated"], true);
    assert_eq!(content["text_preview"], format!("x{}", "€".repeat(21_845)));
}

#[tokio::test]
async fn other_encodings_are_decoded_and_binary_is_skipped() {
    let lab = Lab::start().await;
    let utf16: Vec<u8> = "\u{feff}Well,µ\r\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let id = lab.upload("utf16.txt", &utf16).await;
    assert_eq!(lab.content(&id).await["text_preview"], "Well,µ\r\n");
    let id = lab.upload("latin1.txt", b"10 \xb5L\n").await;
    assert_eq!(lab.content(&id).await["text_preview"], "10 µL\n");
    let id = lab
        .upload("image.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
        .await;
    let content = lab.content(&id).await;
    assert_eq!(content["text_preview"], json!(null));
    assert_eq!(content["preview_skipped_reason"], "not text");
    assert!(content["download_url"].is_string());
}

#[tokio::test]
async fn an_unknown_file_is_not_found() {
    let lab = Lab::start().await;
    let id = lab.upload("a.csv", b"x").await;
    let stranger = lab.server.stranger().await;
    for (client, id) in [
        (&stranger, id.as_str()),
        (&lab.client, "nonsense"),
        (&lab.client, "0191d5a4-0000-7000-8000-000000000000"),
    ] {
        let path = format!("{PATH}/{id}");
        assert_eq!(
            client.get(&format!("{path}/content")).await.detail(404),
            "file not found"
        );
        assert_eq!(client.get(&path).await.detail(404), "file not found");
        assert_eq!(client.delete(&path).await.detail(404), "file not found");
    }
    lab.content(&id).await;
}

#[tokio::test]
async fn a_deleted_file_is_gone_and_its_name_is_free() {
    let lab = Lab::start().await;
    let id = lab.upload("a.csv", b"first").await;
    let url = lab.content(&id).await["download_url"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("{PATH}/{id}");
    let reader = lab.server.client(&[Scope::Read]).await;
    assert_eq!(reader.delete(&path).await.code(403), "scope_missing");
    assert_eq!(lab.client.delete(&path).await.status, 204);
    assert_eq!(lab.stored(), 1, "its bytes are in the trash");
    lab.client.delete(&path).await.detail(404);
    lab.client.get(&format!("{path}/content")).await.detail(404);
    assert_eq!(lab.client.get(PATH).await.json(200), json!([]));
    let reply = lab.call(Method::GET, &url, &[]).await;
    assert_eq!(reply.status, 404);
    assert!(
        reply.text.contains("<Code>NoSuchKey</Code>"),
        "{}",
        reply.text
    );
    lab.upload("a.csv", b"second").await;
}

#[tokio::test]
async fn without_a_trash_a_deleted_file_is_gone_with_its_bytes() {
    let lab = Lab::with(|services| services.trash_days = 0).await;
    let id = lab.upload("a.csv", b"first").await;
    let deleted = lab.client.delete(&format!("{PATH}/{id}")).await;
    assert_eq!(deleted.status, 204);
    assert_eq!(lab.stored(), 0);
    let trash = lab.client.get("/api/v1/trash").await.json(200);
    assert_eq!(trash, json!([]));
}
