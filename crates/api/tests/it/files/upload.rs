//! `POST /api/v1/files`

use futures::stream;
use labdata_domain::people::scope::Scope;
use reqwest::{Method, header::CONTENT_TYPE};
use serde_json::json;

use super::{Form, Lab, PATH, execution, id, instrument, post};
use crate::server::send;

const UNKNOWN: &str = "0191d5a4-0000-7000-8000-000000000000";

#[tokio::test]
async fn a_file_of_an_instrument_is_stored_and_listed() {
    let lab = Lab::start().await;
    let form = Form::new()
        .field("instrument_id", &lab.instrument)
        .file("plate.csv", b"123456789");
    let uploaded = form.post(&lab.client).await.json(200);
    let file_id = id(&uploaded);
    assert_eq!(
        uploaded,
        json!({ "file_id": file_id, "file_name": "plate.csv", "size_kilobytes": 1 })
    );
    assert_eq!(
        lab.client.get(PATH).await.json(200),
        json!([{
            "file_id": file_id,
            "original_path": "plate.csv",
            "file_name": "plate.csv",
            "source_type": "manual_upload",
            "source_instrument_id": lab.instrument,
            "job_execution_id": null,
            "content_type": "text/csv",
            "size_kilobytes": 1,
            "crc32c_hash": "4waSgw==",
            "file_created_at": null,
            "uploaded_at": "2026-01-01T00:00:00Z",
        }])
    );
}

#[tokio::test]
async fn a_file_of_an_execution_is_a_job_artifact() {
    let lab = Lab::start().await;
    for with_instrument in [false, true] {
        let mut form = Form::new()
            .file("a.csv", b"x")
            .field("job_execution_id", &lab.execution);
        if with_instrument {
            form = form.field("instrument_id", &lab.instrument);
        }
        form.post(&lab.client).await.json(200);
        let listed = lab.client.get(PATH).await.json(200);
        assert_eq!(listed[0]["source_type"], "job_artifact");
        assert_eq!(listed[0]["job_execution_id"], lab.execution);
        assert_eq!(
            listed[0]["source_instrument_id"].is_string(),
            with_instrument
        );
    }
}

#[tokio::test]
async fn every_problem_of_the_form_is_told() {
    let lab = Lab::start().await;
    let problems = async |form: Form| form.post(&lab.client).await.problems();
    let at = |kind: &str, place: &str| (kind.to_owned(), place.to_owned());
    let cases = [
        (
            Form::new().file("a.csv", b"x"),
            vec![at("value_error", "body")],
        ),
        (
            Form::new().field("instrument_id", &lab.instrument),
            vec![at("missing", "body.file")],
        ),
        (Form::new(), vec![at("missing", "body.file")]),
        (
            Form::new()
                .field("instrument_id", "x")
                .field("job_execution_id", "y"),
            vec![
                at("missing", "body.file"),
                at("uuid_parsing", "body.job_execution_id"),
                at("uuid_parsing", "body.instrument_id"),
            ],
        ),
        (
            Form::new()
                .field("instrument_id", &lab.instrument)
                .field("file", "no file"),
            vec![at("value_error", "body.file")],
        ),
        (
            Form::new()
                .field("instrument_id", &lab.instrument)
                .file("", b""),
            vec![at("missing", "body.file")],
        ),
        (
            Form::new()
                .field("instrument_id", &lab.instrument)
                .file("a/..", b""),
            vec![at("value_error", "body.file")],
        ),
        (
            Form::new()
                .field("instrument_id", &lab.instrument)
                .file(&"x".repeat(1_025), b""),
            vec![at("value_error", "body.file")],
        ),
    ];
    for (form, expected) in cases {
        let displayed = String::from_utf8_lossy(&form.0).into_owned();
        assert_eq!(problems(form).await, expected, "{displayed}");
    }
    assert_eq!(lab.stored(), 0);
}

#[tokio::test]
async fn empty_and_null_fields_count_as_absent() {
    let lab = Lab::start().await;
    for absent in ["", "null", "  "] {
        let form = Form::new()
            .field("job_execution_id", absent)
            .field("instrument_id", &lab.instrument)
            .file(&format!("{absent}.csv"), b"x");
        form.post(&lab.client).await.json(200);
        let form = Form::new()
            .field("job_execution_id", absent)
            .field("instrument_id", absent)
            .file("a.csv", b"x");
        let expected = vec![("value_error".to_owned(), "body".to_owned())];
        assert_eq!(form.post(&lab.client).await.problems(), expected);
    }
}

#[tokio::test]
async fn a_body_that_is_no_form_is_refused() {
    let lab = Lab::start().await;
    let other = lab
        .client
        .request(Method::POST, PATH)
        .json(&json!({ "file": "x" }));
    assert!(
        send(other)
            .await
            .detail(415)
            .contains("multipart/form-data")
    );
    let none = lab.client.request(Method::POST, PATH).body("x");
    assert!(send(none).await.detail(415).contains("missing"));
    let without_boundary = lab
        .client
        .request(Method::POST, PATH)
        .header(CONTENT_TYPE, "multipart/form-data")
        .body("x");
    let expected = vec![("value_error".to_owned(), "body".to_owned())];
    assert_eq!(send(without_boundary).await.problems(), expected);
    let whole = Form::new()
        .field("instrument_id", &lab.instrument)
        .file("a.csv", b"x")
        .bytes();
    for length in 0..whole.len() - 4 {
        let torn = whole[..length].to_vec();
        assert_eq!(post(&lab.client, torn).await.status, 422, "{length}");
    }
    assert_eq!(lab.stored(), 0);
}

#[tokio::test]
async fn what_is_not_the_organizations_is_not_found() {
    let lab = Lab::start().await;
    let stranger = lab.server.stranger().await;
    let (foreign_instrument, foreign_execution) = (
        instrument(&stranger, "theirs").await,
        execution(&stranger).await,
    );
    for id in [UNKNOWN, &foreign_instrument] {
        let form = Form::new().field("instrument_id", id).file("a.csv", b"x");
        assert_eq!(
            form.post(&lab.client).await.detail(404),
            "instrument not found"
        );
    }
    for id in [UNKNOWN, &foreign_execution] {
        let form = Form::new()
            .field("job_execution_id", id)
            .file("a.csv", b"x");
        assert!(
            form.post(&lab.client)
                .await
                .detail(404)
                .contains("execution not found")
        );
    }
    assert_eq!(lab.stored(), 0);
}

#[tokio::test]
async fn a_closed_execution_takes_no_file() {
    let lab = Lab::start().await;
    let path = format!("/api/v1/job-executions/{}", lab.execution);
    lab.client
        .patch(&path, &json!({ "status": "completed" }))
        .await
        .json(200);
    let form = Form::new()
        .field("job_execution_id", &lab.execution)
        .file("a.csv", b"x");
    assert!(form.post(&lab.client).await.detail(400).contains("closed"));
    assert_eq!(lab.stored(), 0);
}

#[tokio::test]
async fn a_name_of_an_instrument_is_taken_once() {
    let lab = Lab::start().await;
    lab.upload("a.csv", b"first").await;
    let again = Form::new()
        .field("instrument_id", &lab.instrument)
        .file("a.csv", b"second");
    assert!(again.post(&lab.client).await.detail(409).contains("name"));
    assert_eq!(lab.stored(), 1, "the bytes that were refused are gone");
    let calls = (0..8).map(|_| {
        let form = Form::new()
            .field("instrument_id", &lab.instrument)
            .file("race.csv", b"x");
        form.post(&lab.client)
    });
    let mut statuses: Vec<u16> = futures::future::join_all(calls)
        .await
        .iter()
        .map(|reply| reply.status.as_u16())
        .collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409, 409, 409, 409, 409, 409, 409]);
    assert_eq!(lab.stored(), 2);
    for _ in 0..2 {
        let form = Form::new()
            .field("job_execution_id", &lab.execution)
            .file("a.csv", b"x");
        form.post(&lab.client).await.json(200);
    }
}

#[tokio::test]
async fn native_executables_are_refused() {
    let lab = Lab::start().await;
    let mut program = vec![0; 512];
    program[..2].copy_from_slice(b"MZ");
    program[60] = 0x80;
    program[0x80..0x84].copy_from_slice(b"PE\0\0");
    for bytes in [b"\x7fELF\x02\x01\x01".as_slice(), &program] {
        let form = Form::new()
            .field("instrument_id", &lab.instrument)
            .file("a.csv", bytes);
        assert!(
            form.post(&lab.client)
                .await
                .detail(400)
                .contains("executable")
        );
    }
    assert_eq!(lab.stored(), 0);
    lab.upload("masses.csv", b"MZ,intensity\n100.5,3\n").await;
}

#[tokio::test]
async fn types_that_a_browser_could_render_are_substituted() {
    let lab = Lab::start().await;
    let cases = [
        ("text/html", "application/octet-stream"),
        ("image/svg+xml", "application/octet-stream"),
        ("nonsense", "application/octet-stream"),
        ("text/plain; charset=utf-8", "text/plain; charset=utf-8"),
    ];
    for (index, (given, stored)) in cases.into_iter().enumerate() {
        let form = Form::new().field("instrument_id", &lab.instrument).file_of(
            given,
            &format!("{index}.x"),
            b"x",
        );
        form.post(&lab.client).await.json(200);
        assert_eq!(
            lab.client.get(PATH).await.json(200)[0]["content_type"],
            stored,
            "{given}"
        );
    }
}

#[tokio::test]
async fn a_body_of_the_limit_is_refused_also_when_its_length_is_not_announced() {
    let lab = Lab::start().await;
    let body = |length: usize| {
        let form = Form::new()
            .field("instrument_id", &lab.instrument)
            .file("a.bin", b"")
            .bytes();
        let padding = vec![b'x'; length - form.len()];
        Form::new()
            .field("instrument_id", &lab.instrument)
            .file("a.bin", &padding)
            .bytes()
    };
    let whole = body(4_718_592);
    assert_eq!(whole.len(), 4_718_592);
    post(&lab.client, whole.clone()).await.detail(413);
    let parts: Vec<Result<Vec<u8>, std::io::Error>> = whole
        .chunks(60_000)
        .map(|chunk| Ok(chunk.to_vec()))
        .collect();
    let chunked = reqwest::Body::wrap_stream(stream::iter(parts));
    post(&lab.client, chunked).await.detail(413);
    assert_eq!(lab.stored(), 0);
    let fits = post(&lab.client, body(4_718_591)).await.json(200);
    assert_eq!(fits["size_kilobytes"], 4_608);
}

#[tokio::test]
async fn a_name_is_recorded_as_given_and_leads_nowhere() {
    let lab = Lab::start().await;
    let cases = [
        ("../../../etc/passwd", "../../../etc/passwd", "passwd"),
        ("/etc/shadow", "/etc/shadow", "shadow"),
        ("C:\\\\Data\\\\a b.csv", "C:\\Data\\a b.csv", "a b.csv"),
        ("a\\\"b;c.csv", "a\"b;c.csv", "a\"b;c.csv"),
        ("Süd €.csv", "Süd €.csv", "Süd €.csv"),
        ("%2e%2e%2fx", "%2e%2e%2fx", "%2e%2e%2fx"),
    ];
    for (number, (sent, path, name)) in (1..).zip(cases) {
        let form = Form::new()
            .field("instrument_id", &lab.instrument)
            .file(sent, b"x");
        assert_eq!(form.post(&lab.client).await.json(200)["file_name"], name);
        let listed = lab.client.get(PATH).await.json(200);
        let found = listed
            .as_array()
            .unwrap()
            .iter()
            .any(|file| file["original_path"] == path);
        assert!(found, "{path} is not in {listed}");
        assert_eq!(lab.stored(), number, "in the storage, and nowhere else");
    }
}

#[tokio::test]
async fn a_name_is_decoded_as_browsers_and_curl_escape_it() {
    let lab = Lab::start().await;
    let upload = async |name: &str| {
        let form = Form::new().field("instrument_id", &lab.instrument);
        form.file(name, b"x").post(&lab.client).await
    };
    let stored = upload("a%22b.csv").await.json(200);
    assert_eq!(stored["file_name"], "a\"b.csv");
    let whole = upload("50%25 a%20b.csv").await.json(200);
    assert_eq!(whole["file_name"], "50%25 a%20b.csv");
    for name in ["new%0Aline.csv", "new%0Dline.csv"] {
        let problems = upload(name).await.problems();
        assert_eq!(problems[0].1, "body.file", "{name}");
    }
}

#[tokio::test]
async fn a_file_of_no_bytes_is_a_file() {
    let lab = Lab::start().await;
    let id = lab.upload("empty.csv", b"").await;
    let listed = lab.client.get(PATH).await.json(200);
    assert_eq!(listed[0]["size_kilobytes"], 0);
    assert_eq!(listed[0]["crc32c_hash"], "AAAAAA==");
    let content = lab.content(&id).await;
    assert_eq!(content["text_preview"], "");
    assert_eq!(content["preview_truncated"], false);
}

#[tokio::test]
async fn uploading_needs_the_write_scope() {
    let lab = Lab::start().await;
    let reader = lab.server.client(&[Scope::Read]).await;
    let form = Form::new()
        .field("instrument_id", &lab.instrument)
        .file("a.csv", b"x");
    assert_eq!(form.post(&reader).await.code(403), "scope_missing");
    assert_eq!(lab.stored(), 0);
}
