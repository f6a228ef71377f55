//! `Idempotency-Key`, on PostgreSQL.

use futures::future::join_all;
use labdata_postgres::DatabaseSettings;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    on_postgres::{OnPostgres, WRITE},
    server::{Reply, send},
};

async fn lab() -> OnPostgres {
    OnPostgres::with_tables(DatabaseSettings::default()).await
}

impl OnPostgres {
    async fn post_once(&self, path: &str, key: &str, body: &Value) -> Reply {
        let request = self.client.request(Method::POST, path);
        send(request.header("Idempotency-Key", key).json(body)).await
    }
}

fn one_row(name: &str) -> Value {
    json!({ "tables": [{ "table": "sample", "rows": [{ "name": name }] }] })
}

#[tokio::test]
async fn a_request_that_is_sent_again_has_one_effect_and_is_answered_the_same() {
    let lab = lab().await;
    let instrument = lab
        .client
        .post("/api/v1/instruments", &json!({ "name": "reader" }))
        .await
        .json(200);
    let job = lab
        .client
        .post(
            "/api/v1/jobs",
            &json!({ "name": "run", "code": "print(1)" }),
        )
        .await
        .json(200);
    let run = format!("/api/v1/jobs/{}/run", job["id"].as_str().unwrap());
    for (path, body) in [
        (WRITE, one_row("once")),
        (run.as_str(), json!({})),
        (
            "/api/v1/jobs",
            json!({ "name": "parse", "code": "print(1)" }),
        ),
        ("/api/v1/job-executions", json!({ "job_name": "by hand" })),
        ("/api/v1/instruments", json!({ "name": "another reader" })),
        (
            "/api/v1/files/upload-url",
            json!({ "file_name": "a.csv", "instrument_id": instrument["id"] }),
        ),
        (
            "/api/v1/notifications",
            json!({ "title": "done", "dedupe_key": "once" }),
        ),
    ] {
        let first = lab.post_once(path, "the same", &body).await;
        first.json(200);
        assert_eq!(first.header("idempotent-replayed"), None, "{path}");
        for _ in 0..2 {
            let again = lab.post_once(path, "the same", &body).await;
            assert_eq!(again.header("idempotent-replayed"), Some("true"), "{path}");
            assert_eq!(again.text, first.text, "{path}");
            assert_eq!(
                again.header("content-type"),
                first.header("content-type"),
                "{path}"
            );
        }
    }
    assert_eq!(lab.rows("sample", json!({})).await.len(), 1);
    let executions = lab.client.get("/api/v1/job-executions").await.json(200);
    assert_eq!(executions.as_array().unwrap().len(), 3, "{executions}");
}

#[tokio::test]
async fn spellings_of_one_path_are_one_request() {
    let lab = lab().await;
    for path in [WRITE, "/api/v1/data/%77rite", "/api/v1/%64ata/writ%65"] {
        let written = lab.post_once(path, "one", &one_row("once")).await;
        written.json(200);
    }
    assert_eq!(lab.column("sample", "name").await, ["once"]);

    let job = json!({ "name": "run", "code": "print(1)" });
    let job = lab.client.post("/api/v1/jobs", &job).await.json(200);
    let id = job["id"].as_str().unwrap();
    let escaped = id.replace('-', "%2D");
    for id in [id, &id.to_uppercase(), &escaped] {
        let path = format!("/api/v1/jobs/{id}/run");
        lab.post_once(&path, "run", &json!({})).await.json(200);
    }
    let runs = format!("/api/v1/job-executions?job_id={id}");
    let runs = lab.client.get(&runs).await.json(200);
    assert_eq!(runs.as_array().unwrap().len(), 1, "{runs}");
}

#[tokio::test]
async fn neither_a_dry_run_nor_a_large_response_is_stored() {
    let lab = lab().await;
    let stored = async || {
        let database = lab.look_behind().await;
        let count = "SELECT count(*) FROM labdata.idempotency_key";
        database
            .query_one(count, &[])
            .await
            .unwrap()
            .get::<_, i64>(0)
    };
    let mut write = one_row("once");
    write["dry_run"] = true.into();
    for _ in 0..2 {
        let tried = lab.post_once(WRITE, "key", &write).await;
        assert_eq!(tried.header("idempotent-replayed"), None);
        assert_eq!(tried.json(200)["job_execution_id"], Value::Null);
    }
    assert_eq!(stored().await, 0);

    let mut long = one_row("long");
    long["tables"][0]["rows"][0]["note"] = "\u{1}".repeat(720_000).into();
    long["return_rows"] = true.into();
    let refused = lab.post_once(WRITE, "key", &long).await.json(400);
    assert_eq!(refused["code"], "result_too_large");
    assert_eq!(
        (stored().await, lab.rows("sample", json!({})).await.len()),
        (0, 0)
    );
    long["return_rows"] = false.into();
    lab.post_once(WRITE, "key", &long).await.json(200);
    assert_eq!(
        (stored().await, lab.rows("sample", json!({})).await.len()),
        (1, 1)
    );
}

#[tokio::test]
async fn the_same_key_with_another_body_is_refused_and_changes_nothing() {
    let lab = lab().await;
    lab.post_once(WRITE, "key", &one_row("first"))
        .await
        .json(200);
    let other = lab.post_once(WRITE, "key", &one_row("second")).await;
    assert_eq!(
        other.problems(),
        [(
            "value_error".to_owned(),
            "header.Idempotency-Key".to_owned()
        )]
    );
    assert_eq!(lab.column("sample", "name").await, ["first"]);
    // Another path is another request.
    lab.post_once("/api/v1/job-executions", "key", &json!({}))
        .await
        .json(200);
}

#[tokio::test]
async fn a_refused_request_may_be_fixed_and_sent_under_the_same_key() {
    let lab = lab().await;
    let wrong =
        json!({ "tables": [{ "table": "sample", "rows": [{ "name": "a" }, { "name": "a" }] }] });
    lab.post_once(WRITE, "key", &wrong).await.json(400);
    lab.post_once(WRITE, "key", &json!({ "tables": 1 }))
        .await
        .json(422);
    lab.post_once(WRITE, "key", &one_row("a")).await.json(200);
    assert_eq!(lab.column("sample", "name").await, ["a"]);

    let job = json!({ "name": "parse", "code": "print(1)" });
    lab.post_once("/api/v1/jobs", "first", &job).await.json(200);
    for _ in 0..2 {
        let clash = lab.post_once("/api/v1/jobs", "second", &job).await;
        assert_eq!(clash.code(409), "name_taken");
        assert_eq!(clash.header("idempotent-replayed"), None);
    }
}

#[tokio::test]
async fn of_racing_requests_with_one_key_one_writes_and_all_are_answered_the_same() {
    let lab = lab().await;
    let body = one_row("raced");
    let replies = join_all((0..8).map(|_| lab.post_once(WRITE, "key", &body))).await;
    for reply in &replies {
        reply.json(200);
        assert_eq!(reply.text, replies[0].text);
    }
    let replayed = replies
        .iter()
        .filter(|reply| reply.header("idempotent-replayed") == Some("true"))
        .count();
    assert_eq!(replayed, 7);
    assert_eq!(lab.rows("sample", json!({})).await.len(), 1);
}

#[tokio::test]
async fn every_kind_of_write_works_within_the_transaction_of_its_key() {
    let lab = lab().await;
    for (key, body) in [
        (
            "upsert",
            json!({ "tables": [{ "table": "sample", "mode": "upsert", "key": ["name"],
            "rows": [{ "name": "a", "volume": 1 }, { "name": "b" }] }] }),
        ),
        (
            "series",
            json!({ "series": [{ "table": "curve", "parent": { "name": "a" },
            "columns": { "od": [1, 2, 3] } }] }),
        ),
        (
            "dry run",
            json!({ "dry_run": true, "tables": [{ "table": "sample", "mode": "delete",
            "key": ["name"], "rows": [{ "name": "a" }] }] }),
        ),
        (
            "delete",
            json!({ "tables": [{ "table": "sample", "mode": "delete", "key": ["name"],
            "rows": [{ "name": "a" }] }] }),
        ),
    ] {
        let first = lab.post_once(WRITE, key, &body).await;
        first.json(200);
        let again = lab.post_once(WRITE, key, &body).await;
        assert_eq!(again.text, first.text, "{key}");
    }
    assert_eq!(lab.column("sample", "name").await, ["b"]);
}

#[tokio::test]
async fn a_key_is_one_header_of_1_to_255_characters() {
    let lab = lab().await;
    let long = "k".repeat(256);
    for key in ["", " ", long.as_str()] {
        let refused = lab.post_once(WRITE, key, &one_row("a")).await;
        assert_eq!(refused.problems()[0].1, "header.Idempotency-Key", "{key:?}");
    }
    let twice = lab
        .client
        .request(Method::POST, WRITE)
        .header("Idempotency-Key", "a")
        .header("Idempotency-Key", "b")
        .json(&one_row("a"));
    assert_eq!(send(twice).await.problems()[0].1, "header.Idempotency-Key");
    assert_eq!(lab.rows("sample", json!({})).await.len(), 0);
    lab.post_once(WRITE, &"k".repeat(255), &one_row("a"))
        .await
        .json(200);
}

#[tokio::test]
async fn an_upload_that_is_sent_again_is_one_file_whatever_its_boundary() {
    let lab = lab().await;
    let execution = lab
        .client
        .post("/api/v1/job-executions", &json!({}))
        .await
        .json(200);
    let upload = async |boundary: &str, content: &str| {
        let part = |disposition: &str, value: &str| {
            format!(
                "--{boundary}\r\nContent-Disposition: form-data; {disposition}\r\n\r\n{value}\r\n"
            )
        };
        let id = execution["job_execution_id"].as_str().unwrap();
        let body = part("name=\"job_execution_id\"", id)
            + &part("name=\"file\"; filename=\"a.csv\"", content)
            + &format!("--{boundary}--\r\n");
        let request = lab
            .client
            .request(Method::POST, "/api/v1/files")
            .header("Idempotency-Key", "the same")
            .header(
                "Content-Type",
                format!("multipart/form-data; boundary={boundary}"),
            );
        send(request.body(body)).await
    };
    let first = upload("first", "1").await;
    first.json(200);
    let again = upload("second", "1").await;
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(again.text, first.text);
    assert_eq!(upload("first", "2").await.status, 422);
    let files = lab.client.get("/api/v1/files").await.json(200);
    assert_eq!(files.as_array().unwrap().len(), 1, "{files}");
}

#[tokio::test]
async fn an_answer_with_a_secret_is_neither_stored_nor_replayed() {
    let lab = lab().await;
    let body = json!({ "name": "mine", "scopes": ["read"] });
    let refused = lab.post_once("/api/v1/api-keys", "key", &body).await;
    assert!(refused.detail(400).contains("Idempotency-Key"));
    let created = lab.client.post("/api/v1/api-keys", &body).await;
    created.json(200);
    assert_eq!(created.header("cache-control"), Some("no-store"));
}

#[test]
fn every_post_that_creates_honors_an_idempotency_key() {
    // The list of contract §3, as far as its endpoints exist.
    let creating = [
        "/api/v1/data/write",
        "/api/v1/files",
        "/api/v1/files/upload-url",
        "/api/v1/instruments",
        "/api/v1/job-executions",
        "/api/v1/jobs",
        "/api/v1/jobs/{job_id}/run",
        "/api/v1/notifications",
    ];
    let document = labdata_api::routes::openapi();
    for path in creating {
        let parameters = document["paths"][path]["post"]["parameters"].as_array();
        let names = parameters.into_iter().flatten().map(|one| &one["name"]);
        assert!(
            names.into_iter().any(|name| name == "Idempotency-Key"),
            "{path}"
        );
    }
}

#[tokio::test]
async fn forty_equal_keys_at_once_hold_one_connection_and_nobody_else_waits() {
    let settings = DatabaseSettings {
        max_connections: 4,
        ..DatabaseSettings::default()
    };
    let lab = OnPostgres::with_tables(settings).await;
    // The first request waits for this lock, and the rest for the first.
    let behind = lab.behind().await;
    let lock = "SELECT pg_advisory_lock(hashtextextended('x', 0)); \
         BEGIN; LOCK TABLE labdata.instrument IN EXCLUSIVE MODE";
    behind.batch_execute(lock).await.unwrap();
    let body = json!({ "name": "flooded" });
    let flood = (0..40).map(|_| lab.post_once("/api/v1/instruments", "key", &body));
    let others = async {
        // All of the flood has arrived once its first request waits for the lock.
        lab.until_a_statement_waits().await;
        for number in 0..8 {
            let begun = std::time::Instant::now();
            lab.write(one_row(&format!("beside {number}")))
                .await
                .json(200);
            assert!(begun.elapsed().as_secs() < 2);
        }
        behind.batch_execute("COMMIT").await.unwrap();
    };
    let (replies, ()) = futures::join!(join_all(flood), others);
    for reply in &replies {
        reply.json(200);
        assert_eq!(reply.text, replies[0].text);
    }
}

/// The thread that checks a script at the moment.
fn checking_thread() -> Option<std::path::PathBuf> {
    let mut tasks = std::fs::read_dir("/proc/self/task").unwrap();
    tasks.find_map(|task| {
        let task = task.ok()?.path();
        let name = std::fs::read_to_string(task.join("comm")).ok()?;
        (name.trim() == "check-script").then_some(task)
    })
}

#[tokio::test]
async fn a_script_that_takes_long_to_check_holds_no_connection() {
    let lab = OnPostgres::empty(DatabaseSettings::default()).await;
    let behind = lab.behind().await;
    let units = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
         AND state LIKE 'idle in transaction%'";
    let code = "value = [1, (2), {3: 4}]\n".repeat(10_000);
    let body = json!({ "name": "long", "code": code });
    let answered = std::cell::Cell::new(false);
    let watched = async {
        // Short scripts of other tests are checked within a sample or two.
        let (mut thread, mut samples) = (None, 0);
        while samples < 8 && !answered.get() {
            let open: i64 = behind.query_one(units, &[]).await.unwrap().get(0);
            let checking = checking_thread();
            if checking.is_none() || checking != thread {
                (thread, samples) = (checking, 0);
                continue;
            }
            samples += 1;
            assert_eq!(open, 0, "the unit of work has begun");
        }
        samples
    };
    let posted = async {
        let reply = lab.post_once("/api/v1/jobs", "key", &body).await;
        answered.set(true);
        reply
    };
    let (reply, samples) = futures::join!(posted, watched);
    reply.json(200);
    assert_eq!(samples, 8, "the check was too short to be watched");
}
