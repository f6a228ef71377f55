//! Files.

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use crc_fast::CrcAlgorithm;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    client::{Outcome, Payload, Request, Response, text_of},
    ledger::Kind,
    load::{Connection, OwnedFile},
};

/// Longest file in bytes.
const LONGEST: u64 = 40_000;

/// Uploads a file in one request, for an execution or an instrument.
pub(super) async fn upload(connection: &mut Connection) {
    let name = format!("{}.txt", connection.tag());
    let instrument = ("instrument_id", connection.load.lab.instrument.clone());
    let execution = ("job_execution_id", connection.execution.clone());
    let is_artifact = connection.random.below(2) == 0 && !execution.1.is_empty();
    upload_as(
        connection,
        name,
        if is_artifact { execution } else { instrument },
    )
    .await;
}

/// Uploads a file in one request; returns its id if it was acknowledged.
pub(super) async fn upload_as(
    connection: &mut Connection,
    name: String,
    owner: (&'static str, String),
) -> Option<String> {
    let bytes = content(connection, &name);
    let payload = Payload::Form {
        fields: vec![owner],
        file_name: name.clone(),
        bytes: bytes.clone(),
    };
    let request =
        Request::new("POST /files", Method::POST, "/api/v1/files", payload).idempotent(&name);
    let state = Some(checksum(&bytes));
    let response = connection
        .change(&request, Kind::File, &name, state)
        .await?;
    let id = response.text("file_id");
    connection.own_file(OwnedFile {
        id: id.clone(),
        name,
        bytes,
    });
    Some(id)
}

/// Uploads a file through a signed URL, and confirms it.
pub(super) async fn signed_upload(connection: &mut Connection) {
    let name = format!("{}.txt", connection.tag());
    let bytes = content(connection, &name);
    let body = json!({
        "file_name": name,
        "content_type": "text/plain",
        "instrument_id": connection.load.lab.instrument,
    });
    let request =
        Request::post("POST /files/upload-url", "/api/v1/files/upload-url", body).idempotent(&name);
    let Some(begun) = connection.load.client.expect(&request).await else {
        return;
    };
    if !put(connection, &begun, bytes.clone()).await {
        return;
    }
    let id = begun.text("file_id");
    let confirm = Request::new(
        "POST /files/{id}/confirm-upload",
        Method::POST,
        format!("/api/v1/files/{id}/confirm-upload"),
        Payload::Empty,
    );
    let state = Some(checksum(&bytes));
    if connection
        .change(&confirm, Kind::File, &name, state)
        .await
        .is_some()
    {
        connection.own_file(OwnedFile { id, name, bytes });
    }
}

/// Sends the bytes to the signed URL; returns whether they are stored.
async fn put(connection: &Connection, begun: &Response, bytes: Bytes) -> bool {
    let body = begun.json();
    let url = text_of(&body, "upload_url");
    let mut request = Request::new("PUT signed URL", Method::PUT, url, Payload::Bytes(bytes));
    let headers = body.get("headers").and_then(Value::as_object);
    for (name, value) in headers.into_iter().flatten() {
        request = request.header(name, value.as_str().unwrap_or_default());
    }
    match connection.load.client.send(&request).await {
        Outcome::Done(_) => true,
        // An earlier attempt stored them, whose response was lost.
        Outcome::Refused(response) if response.status == 412 => true,
        // The server still receives an earlier attempt, whose connection was lost.
        Outcome::Refused(response) if response.status == 409 => false,
        Outcome::Refused(response) => {
            let client = &connection.load.client;
            client.wrong(&request, &response, "was not expected");
            false
        }
        Outcome::Unknown => false,
    }
}

/// Reads a file's preview, and downloads it.
pub(super) async fn download(connection: &mut Connection) {
    let Some(file) = connection.take_file() else {
        return upload(connection).await;
    };
    let path = format!("/api/v1/files/{}/content", file.id);
    let request = Request::get("GET /files/{id}/content", path);
    if let Some(content) = connection.load.client.expect(&request).await {
        let request = Request::get("GET signed URL", content.text("download_url"));
        let downloaded = connection.load.client.expect(&request).await;
        if downloaded.is_some_and(|response| response.body != file.bytes) {
            let name = &file.name;
            connection
                .load
                .problem(format!("File {name}: other bytes than those uploaded"));
        }
    }
    connection.own_file(file);
}

/// Deletes a file.
pub(super) async fn delete(connection: &mut Connection) {
    let Some(file) = connection.take_file() else {
        return upload(connection).await;
    };
    let request = Request::new(
        "DELETE /files/{id}",
        Method::DELETE,
        format!("/api/v1/files/{}", file.id),
        Payload::Empty,
    );
    connection
        .change(&request, Kind::File, &file.name, None)
        .await;
}

/// Bytes that begin with the file's name.
fn content(connection: &mut Connection, name: &str) -> Bytes {
    let length = usize::try_from(connection.random.below(LONGEST)).unwrap_or_default();
    let line = format!("{name}\n");
    Bytes::from(line.repeat(1 + length / line.len()))
}

/// Checksum as listings show it.
fn checksum(bytes: &[u8]) -> String {
    let sum = crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, bytes);
    let sum = u32::try_from(sum).unwrap_or_default();
    BASE64_STANDARD.encode(sum.to_be_bytes())
}

#[cfg(test)]
mod tests {
    #[test]
    fn checksums_are_crc32c_in_big_endian_base64() {
        assert_eq!(super::checksum(b"123456789"), "4waSgw==");
    }
}
