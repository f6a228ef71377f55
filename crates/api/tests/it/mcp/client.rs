//! The official Python SDK as a client.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use labdata_domain::people::scope::Scope::{Read, Write};
use labdata_postgres::DatabaseSettings;
use labdata_sandbox::{Python, Uv};
use reqwest::multipart::{Form, Part};
use serde_json::json;

use crate::{on_postgres::OnPostgres, server::send};

const GUIDE: &str = include_str!("../../../../../docs/MCP.md");

/// Returns a Python with the SDK, which the first call installs below the target directory.
fn python() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let environment = target.join("mcp-venv");
    let created = Python::find(None).and_then(|python| {
        Uv::find(None, &target.join("tools"), &python)?
            .create_environment(&environment, include_str!("client-requirements.txt"))
    });
    created.expect("this test needs the Python SDK of MCP, which uv installs");
    environment.join("bin/python")
}

async fn upload(lab: &OnPostgres, name: &str, text: &'static str) {
    let instrument = json!({ "name": "reader" });
    let instrument = lab.client.post("/api/v1/instruments", &instrument).await;
    let form = Form::new()
        .part("file", Part::text(text).file_name(name.to_owned()))
        .text(
            "instrument_id",
            instrument.json(200)["id"].as_str().unwrap().to_owned(),
        );
    let request = lab.client.request(reqwest::Method::POST, "/api/v1/files");
    send(request.multipart(form)).await.json(200);
}

#[tokio::test]
async fn the_python_sdk_reads_writes_and_is_held_to_its_key() {
    let lab = OnPostgres::with_tables(DatabaseSettings::default()).await;
    lab.insert("sample", json!([{ "name": "A" }, { "name": "B" }]))
        .await;
    upload(&lab, "notes.txt", "two plates\n").await;
    let (base, writer) = lab.server.client(&[Read, Write]).await.as_others_need_it();
    let (_, reader) = lab.server.client(&[Read]).await.as_others_need_it();
    let using = tokio::task::spawn_blocking(move || {
        Command::new(python())
            .arg(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/tests/it/mcp/client.py"
            ))
            .args([base, writer, reader])
            .output()
    });
    let output = using.await.unwrap().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let report = String::from_utf8_lossy(&output.stdout);
    assert_eq!(report.trim(), "both lifecycles work");
}

#[tokio::test]
async fn the_example_of_the_guide_queries_a_table() {
    let lab = OnPostgres::with_tables(DatabaseSettings::default()).await;
    lab.insert("sample", json!([{ "name": "A" }, { "name": "B" }]))
        .await;
    let (base, reader) = lab.server.client(&[Read]).await.as_others_need_it();
    let key = reader.trim_start_matches("Bearer ").to_owned();
    let (_, example) = GUIDE.split_once("```python\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let using = tokio::task::spawn_blocking(move || {
        Command::new(python())
            .args(["-c", example])
            .env("LABDATA_BASE_URL", base)
            .env("LABDATA_API_KEY", key)
            .output()
    });
    let output = using.await.unwrap().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(report.contains("[[2]]"), "{report}");
}
