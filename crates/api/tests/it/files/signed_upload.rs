//! `POST /api/v1/files/upload-url`, the signed PUT, and confirming

use futures::{StreamExt, stream};
use labdata_domain::files::{ContentType, ObjectKey};
use labdata_ports::{Clock, files::blob::UploadGrant};
use reqwest::Method;
use serde_json::{Value, json};
use time::Duration;

use super::{Lab, PATH, id, instrument, text};
use crate::server::{Reply, send};

impl Lab {
    /// A signed upload URL of the instrument's.
    pub(super) async fn begin(&self, name: &str) -> Value {
        let body = json!({
            "file_name": name, "content_type": "text/csv", "instrument_id": self.instrument
        });
        self.client
            .post(&format!("{PATH}/upload-url"), &body)
            .await
            .json(200)
    }

    pub(super) async fn put(&self, begun: &Value, body: impl Into<reqwest::Body>) -> Reply {
        self.put_with(begun, &begun["headers"], body).await
    }

    async fn put_with(
        &self,
        begun: &Value,
        headers: &Value,
        body: impl Into<reqwest::Body>,
    ) -> Reply {
        let url = self.local(begun["upload_url"].as_str().unwrap());
        let mut request = self
            .server
            .anonymous()
            .request(Method::PUT, &url)
            .body(body);
        for (name, value) in headers.as_object().unwrap() {
            request = request.header(name, value.as_str().unwrap());
        }
        send(request).await
    }

    pub(super) async fn confirm(&self, begun: &Value) -> Reply {
        self.client
            .post(&format!("{PATH}/{}/confirm-upload", id(begun)), &json!({}))
            .await
    }
}

#[track_caller]
pub(super) fn assert_refused(reply: &Reply, status: u16, code: &str) {
    assert_eq!(reply.status, status, "{}", reply.text);
    assert!(
        reply.text.contains(&format!("<Code>{code}</Code>")),
        "{}",
        reply.text
    );
}

#[tokio::test]
async fn bytes_that_were_put_and_confirmed_are_a_file() {
    let lab = Lab::start().await;
    let begun = lab.begin("run/plate.csv").await;
    assert_eq!(
        begun["headers"],
        json!({
            "content-type": "text/csv",
            "x-goog-if-generation-match": "0",
            "x-goog-content-length-range": "0,524288000",
        })
    );
    assert_eq!(begun["expires_at"], "2026-01-01T00:15:00Z");
    assert_eq!(lab.client.get(PATH).await.json(200), json!([]));
    assert!(
        lab.confirm(&begun)
            .await
            .detail(400)
            .contains("not uploaded")
    );
    let content = format!("{PATH}/{}/content", id(&begun));
    assert!(
        lab.client
            .get(&content)
            .await
            .detail(400)
            .contains("not confirmed")
    );

    let stored = lab.put(&begun, "123456789").await;
    assert_eq!(stored.status, 200, "{}", stored.text);
    assert_eq!(text(&stored.headers, "x-goog-hash"), "crc32c=4waSgw==");
    assert_eq!(lab.client.get(PATH).await.json(200), json!([]));

    lab.server.clock.advance(Duration::hours(1));
    let confirmed = lab.confirm(&begun).await.json(200);
    let expected =
        json!({ "file_id": begun["file_id"], "file_name": "plate.csv", "size_kilobytes": 1 });
    assert_eq!(confirmed, expected);
    assert_eq!(lab.confirm(&begun).await.json(200), expected);
    let listed = lab.client.get(PATH).await.json(200);
    assert_eq!(listed[0]["crc32c_hash"], "4waSgw==");
    assert_eq!(listed[0]["uploaded_at"], "2026-01-01T01:00:00Z");
    assert_eq!(listed[0]["original_path"], "run/plate.csv");
    assert_eq!(lab.content(&id(&begun)).await["text_preview"], "123456789");
}

#[tokio::test]
async fn an_object_is_created_once() {
    let lab = Lab::start().await;
    let begun = lab.begin("a.csv").await;
    assert_eq!(lab.put(&begun, "first").await.status, 200);
    assert_refused(&lab.put(&begun, "second").await, 412, "PreconditionFailed");
    lab.confirm(&begun).await.json(200);
    assert_refused(&lab.put(&begun, "third").await, 412, "PreconditionFailed");
    assert_eq!(lab.content(&id(&begun)).await["text_preview"], "first");
}

#[tokio::test]
async fn the_signed_headers_must_be_sent_as_they_are() {
    let lab = Lab::start().await;
    let begun = lab.begin("a.csv").await;
    for name in [
        "content-type",
        "x-goog-if-generation-match",
        "x-goog-content-length-range",
    ] {
        let mut headers = begun["headers"].clone();
        headers.as_object_mut().unwrap().remove(name);
        assert_refused(
            &lab.put_with(&begun, &headers, "x").await,
            400,
            "MalformedSecurityHeader",
        );
        headers[name] = json!("0,999999999999");
        assert_refused(
            &lab.put_with(&begun, &headers, "x").await,
            403,
            "SignatureDoesNotMatch",
        );
    }
    assert_eq!(lab.stored(), 0);
}

#[tokio::test]
async fn a_tampered_or_expired_url_takes_nothing() {
    let lab = Lab::start().await;
    let mut begun = lab.begin("a.csv").await;
    let url = begun["upload_url"].as_str().unwrap().to_owned();
    let mut place = url.split('?').next().unwrap().rsplit('/');
    let (object, organization) = (place.next().unwrap(), place.next().unwrap());
    let other = "0191d5a4-0000-7000-8000-000000000000";
    for tampered in [
        url.replace(object, other),
        url.replace(organization, other),
        url.replace(object, &format!("../{object}")),
        url.replace("x-labdata-expires=1", "x-labdata-expires=2"),
        format!("{url}&x=1"),
        url.split('?').next().unwrap().to_owned(),
    ] {
        assert_ne!(tampered, url);
        begun["upload_url"] = json!(tampered);
        assert_refused(&lab.put(&begun, "x").await, 403, "SignatureDoesNotMatch");
    }
    begun["upload_url"] = json!(url);
    assert_refused(
        &lab.call(Method::GET, &url, &[]).await,
        403,
        "SignatureDoesNotMatch",
    );
    lab.server.clock.advance(Duration::minutes(15));
    assert_refused(&lab.put(&begun, "x").await, 400, "ExpiredToken");
    assert_eq!(lab.stored(), 0);
}

#[tokio::test]
async fn a_body_over_500_megabytes_is_refused_before_it_is_sent() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let lab = Lab::start().await;
    let begun = lab.begin("a.csv").await;
    let url = lab.local(begun["upload_url"].as_str().unwrap());
    let target = url.split_once(&lab.server.address.to_string()).unwrap().1;
    let mut head = format!("PUT {target} HTTP/1.1\r\nHost: x\r\nContent-Length: 524288001\r\n");
    for (name, value) in begun["headers"].as_object().unwrap() {
        head = format!("{head}{name}: {}\r\n", value.as_str().unwrap());
    }
    let mut socket = tokio::net::TcpStream::connect(lab.server.address)
        .await
        .unwrap();
    socket
        .write_all(format!("{head}\r\n").as_bytes())
        .await
        .unwrap();
    let mut response = vec![0; 4_096];
    let reading = tokio::time::timeout(
        std::time::Duration::from_secs(5),
        socket.read(&mut response),
    );
    let length = reading.await.expect("an answer without the body").unwrap();
    let response = String::from_utf8_lossy(&response[..length]).into_owned();
    assert!(response.starts_with("HTTP/1.1 400"), "{response}");
    assert!(response.contains("EntityTooLarge"), "{response}");
}

#[tokio::test]
async fn a_body_that_turns_out_too_long_is_refused_and_leaves_nothing() {
    let lab = Lab::start().await;
    let awaited = lab.begin("a.csv").await["upload_url"].clone();
    let place = awaited.as_str().unwrap().split('?').next().unwrap();
    let object: ObjectKey = place.rsplit('/').next().unwrap().parse().unwrap();
    let grant = UploadGrant {
        object,
        content_type: ContentType::substitute(Some("text/csv")),
        limit: 600_000,
        expires_at: lab.server.clock.now() + Duration::minutes(15),
    };
    let services = &lab.server.services;
    let signing = services.signer.sign_upload(lab.server.organization, &grant);
    let given = signing.await.unwrap();
    let headers: serde_json::Map<String, Value> = given
        .headers
        .into_iter()
        .map(|(name, value)| (name, json!(value)))
        .collect();
    let begun = json!({ "upload_url": given.url, "headers": headers });
    // In chunks, without an announced length.
    let body = |chunks: usize| {
        let endless = stream::repeat_with(|| Ok::<_, std::io::Error>(vec![7_u8; 100_000]));
        reqwest::Body::wrap_stream(endless.take(chunks))
    };
    assert_refused(&lab.put(&begun, body(7)).await, 400, "EntityTooLarge");
    assert_eq!(lab.stored(), 0);
    assert_eq!(lab.put(&begun, body(6)).await.status, 200);
}

#[tokio::test]
async fn a_url_of_one_organization_leads_to_nothing_of_another() {
    let lab = Lab::start().await;
    let ours = lab.begin("a.csv").await;
    let stranger = lab.server.stranger().await;
    let their_instrument = instrument(&stranger, "theirs").await;
    let body = json!({ "file_name": "a.csv", "instrument_id": their_instrument });
    let theirs = stranger.post(&format!("{PATH}/upload-url"), &body).await;
    let theirs = theirs.json(200);
    let place = |begun: &Value| -> (String, String) {
        let url = begun["upload_url"].as_str().unwrap();
        let (place, query) = url.split_once('?').unwrap();
        (place.to_owned(), query.to_owned())
    };
    let mut mixed = theirs.clone();
    mixed["upload_url"] = json!(format!("{}?{}", place(&ours).0, place(&theirs).1));
    assert_refused(&lab.put(&mixed, "x").await, 403, "SignatureDoesNotMatch");
    assert_eq!(lab.put(&theirs, "theirs").await.status, 200);
    // Nor does the key of another organization confirm, read or remove it.
    let path = format!("{PATH}/{}", id(&theirs));
    lab.confirm(&theirs).await.detail(404);
    lab.client.get(&format!("{path}/content")).await.detail(404);
    lab.client.delete(&path).await.detail(404);
    let confirm = format!("{path}/confirm-upload");
    stranger.post(&confirm, &json!({})).await.json(200);
    lab.confirm(&ours).await.detail(400);
}

#[tokio::test]
async fn types_that_a_browser_could_render_are_signed_as_bytes() {
    let lab = Lab::start().await;
    for (number, given) in ["text/html", "Image/SVG+xml; a=b", "nonsense", ""]
        .into_iter()
        .enumerate()
    {
        let body = json!({
            "file_name": format!("{number}.x"), "content_type": given,
            "instrument_id": lab.instrument
        });
        let path = format!("{PATH}/upload-url");
        let begun = lab.client.post(&path, &body).await.json(200);
        assert_eq!(
            begun["headers"]["content-type"], "application/octet-stream",
            "{given}"
        );
        let mut headers = begun["headers"].clone();
        headers["content-type"] = json!("text/html");
        let refused = lab.put_with(&begun, &headers, "<script>").await;
        assert_refused(&refused, 403, "SignatureDoesNotMatch");
        assert_eq!(lab.put(&begun, "<script>").await.status, 200);
        lab.confirm(&begun).await.json(200);
        let url = lab.content(&id(&begun)).await["download_url"].clone();
        let served = lab.call(Method::GET, url.as_str().unwrap(), &[]).await;
        assert_eq!(
            text(&served.headers, "content-type"),
            "application/octet-stream"
        );
    }
}

#[tokio::test]
async fn of_racing_requests_for_a_url_one_gets_the_one_that_works() {
    let lab = Lab::start().await;
    let begun = futures::future::join_all((0..8).map(|_| lab.begin("a.csv"))).await;
    let distinct = |field: &str| {
        let values = begun.iter().map(|begun| begun[field].to_string());
        values.collect::<std::collections::BTreeSet<_>>().len()
    };
    assert_eq!((distinct("file_id"), distinct("upload_url")), (1, 8));
    let mut taken = Vec::new();
    for begun in &begun {
        taken.push(lab.put(begun, "x").await.status.as_u16());
    }
    taken.sort_unstable();
    assert_eq!(taken, [[200].as_slice(), &[404; 7]].concat());
    let confirmations = futures::future::join_all(begun.iter().map(|begun| lab.confirm(begun)));
    for confirmed in confirmations.await {
        assert_eq!(confirmed.json(200)["file_id"], begun[0]["file_id"]);
    }
    let listed = lab.client.get(PATH).await.json(200);
    assert_eq!(listed.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_url_takes_nothing_once_its_file_is_gone_or_has_a_fresh_one() {
    let lab = Lab::start().await;
    let superseded = lab.begin("a.csv").await;
    let begun = lab.begin("a.csv").await;
    assert_refused(&lab.put(&superseded, "x").await, 404, "NoSuchKey");
    assert_eq!(lab.put(&begun, "x").await.status, 200);
    lab.confirm(&begun).await.json(200);
    let removed = lab.client.delete(&format!("{PATH}/{}", id(&begun))).await;
    assert_eq!(removed.status, 204);
    assert_refused(&lab.put(&begun, "x").await, 404, "NoSuchKey");

    let begun = lab.begin("a.csv").await;
    assert_eq!(lab.put(&begun, "\x7fELF\x02\x01\x01").await.status, 200);
    lab.confirm(&begun).await.detail(400);
    assert_refused(&lab.put(&begun, "x").await, 404, "NoSuchKey");
    // That of the deleted file is in the trash.
    assert_eq!(lab.stored(), 1);
}

#[tokio::test]
async fn a_body_that_breaks_off_leaves_nothing_and_can_be_sent_again() {
    let lab = Lab::start().await;
    let begun = lab.begin("a.csv").await;
    let url = lab.local(begun["upload_url"].as_str().unwrap());
    let chunks = stream::repeat_with(|| Ok(vec![7_u8; 300_000]))
        .take(4)
        .chain(stream::once(async { Err(std::io::Error::other("cut")) }));
    let mut request = lab.server.anonymous().request(Method::PUT, &url);
    for (name, value) in begun["headers"].as_object().unwrap() {
        request = request.header(name, value.as_str().unwrap());
    }
    assert!(
        request
            .body(reqwest::Body::wrap_stream(chunks))
            .send()
            .await
            .is_err()
    );
    for _ in 0..100 {
        if lab.stored() == 0 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(lab.stored(), 0);
    assert_eq!(lab.put(&begun, "whole").await.status, 200);
    lab.confirm(&begun).await.json(200);
}

#[tokio::test]
async fn an_unconfirmed_name_is_given_the_same_record_and_a_fresh_url() {
    let lab = Lab::start().await;
    let first = lab.begin("a.csv").await;
    lab.put(&first, "of the first URL").await;
    let second = lab.begin("a.csv").await;
    assert_eq!(first["file_id"], second["file_id"]);
    assert_ne!(first["upload_url"], second["upload_url"]);
    assert!(
        lab.confirm(&second)
            .await
            .detail(400)
            .contains("not uploaded")
    );
    assert_eq!(lab.put(&second, "of the second").await.status, 200);
    lab.confirm(&second).await.json(200);
    assert_eq!(
        lab.content(&id(&second)).await["text_preview"],
        "of the second"
    );
    let body = json!({ "file_name": "a.csv", "instrument_id": lab.instrument });
    lab.client
        .post(&format!("{PATH}/upload-url"), &body)
        .await
        .detail(409);
}

#[tokio::test]
async fn the_one_request_upload_takes_an_unconfirmed_record_over() {
    let lab = Lab::start().await;
    let begun = lab.begin("a.csv").await;
    assert_eq!(lab.upload("a.csv", b"in one request").await, id(&begun));
    assert_eq!(
        lab.confirm(&begun).await.json(200)["file_id"],
        begun["file_id"]
    );
    assert_eq!(
        lab.content(&id(&begun)).await["text_preview"],
        "in one request"
    );
}

#[tokio::test]
async fn a_native_executable_is_discarded_with_its_record() {
    let lab = Lab::start().await;
    let begun = lab.begin("a.csv").await;
    let mut program = vec![0; 70_000];
    program[..2].copy_from_slice(b"MZ");
    program[62] = 1;
    program[65_536..65_540].copy_from_slice(b"PE\0\0");
    assert_eq!(lab.put(&begun, program).await.status, 200);
    assert!(lab.confirm(&begun).await.detail(400).contains("executable"));
    lab.confirm(&begun).await.detail(404);
    assert_eq!(lab.stored(), 0);
}

#[tokio::test]
async fn problems_of_the_body_are_all_told() {
    let lab = Lab::start().await;
    let path = format!("{PATH}/upload-url");
    for (body, expected) in [
        (json!({}), vec![("missing", "body.file_name")]),
        (json!({ "file_name": "a" }), vec![("value_error", "body")]),
        (
            json!({ "file_name": "a\0b", "instrument_id": 7 }),
            vec![
                ("value_error", "body.file_name"),
                ("string_type", "body.instrument_id"),
            ],
        ),
        (
            json!({ "file_name": "a\r\nb", "instrument_id": "x" }),
            vec![("value_error", "body.file_name")],
        ),
    ] {
        let mut found = lab.client.post(&path, &body).await.problems();
        found.sort();
        let mut expected: Vec<_> = expected
            .into_iter()
            .map(|(kind, place)| (kind.to_owned(), place.to_owned()))
            .collect();
        expected.sort();
        assert_eq!(found, expected, "{body}");
    }
    let unknown = json!({ "file_name": "a", "instrument_id": "nonsense" });
    assert_eq!(
        lab.client.post(&path, &unknown).await.detail(404),
        "instrument not found"
    );
    let malformed = lab
        .client
        .post(&format!("{PATH}/nonsense/confirm-upload"), &json!({}))
        .await;
    assert_eq!(
        malformed.problems(),
        [("uuid_parsing".to_owned(), "path.file_id".to_owned())]
    );
}

#[tokio::test]
async fn an_upload_is_not_confirmed_into_a_closed_execution() {
    let lab = Lab::start().await;
    let body = json!({ "file_name": "late.csv", "job_execution_id": lab.execution });
    let begun = lab
        .client
        .post(&format!("{PATH}/upload-url"), &body)
        .await
        .json(200);
    assert_eq!(lab.put(&begun, "1").await.status, 200);
    let execution = format!("/api/v1/job-executions/{}", lab.execution);
    lab.client
        .patch(&execution, &json!({ "status": "completed" }))
        .await
        .json(200);
    let detail = lab.confirm(&begun).await.detail(400);
    assert!(detail.contains("closed"), "{detail}");
    assert_eq!(lab.client.get(PATH).await.json(200), json!([]));
}
