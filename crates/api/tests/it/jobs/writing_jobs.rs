//! The examples of docs/WRITING-JOBS.md, run against the built program.

use std::{path::Path, process::Command};

use labdata_sandbox::{Python, Uv};
use reqwest::{
    Client, Method,
    multipart::{Form, Part},
};
use serde_json::{Value, json};

use crate::{
    process::{Program, directory, text},
    work::platform_runs,
};

const GUIDE: &str = include_str!("../../../../../docs/WRITING-JOBS.md");

/// The scripts in the guide, in order.
fn scripts() -> Vec<&'static str> {
    let blocks = GUIDE.split("```python\n").skip(1);
    blocks.filter_map(|rest| rest.split("```").next()).collect()
}

/// A running platform, and an administrator of it.
struct Lab {
    program: Program,
    client: Client,
    key: String,
}

impl Lab {
    async fn call(&self, method: Method, path: &str, body: &Value) -> Value {
        let request = self
            .client
            .request(method, format!("{}{path}", self.program.url))
            .bearer_auth(&self.key)
            .json(body);
        Self::response(request).await
    }

    async fn response(request: reqwest::RequestBuilder) -> Value {
        let response = request.send().await.unwrap();
        let status = response.status();
        let body = response.text().await.unwrap();
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        self.call(Method::POST, path, body).await
    }

    async fn get(&self, path: &str) -> Value {
        self.call(Method::GET, path, &Value::Null).await
    }

    /// Uploads a file of an instrument; its id.
    async fn upload(&self, instrument: &Value, name: &str, bytes: &str) -> String {
        let file = Part::text(bytes.to_owned()).file_name(name.to_owned());
        let form = Form::new()
            .text("instrument_id", instrument.as_str().unwrap().to_owned())
            .part("file", file);
        let request = self
            .client
            .post(format!("{}/api/v1/files", self.program.url))
            .bearer_auth(&self.key)
            .multipart(form);
        let file = Self::response(request).await;
        file["file_id"].as_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn a_file_starts_the_job_that_waits_for_it_and_the_guides_script_reads_it() {
    let own = directory();
    let program = Program::serve(own.path(), &[]);
    let lab = Lab {
        key: program.key.clone().unwrap(),
        client: Client::new(),
        program,
    };
    let columns = json!([
        {"name": "well", "data_type": "string"},
        {"name": "value", "data_type": "float"},
    ]);
    let table = json!({"semantic_category": "curated", "columns": columns});
    lab.call(Method::PUT, "/api/v1/tables/reading", &table)
        .await;
    let instrument = lab
        .post("/api/v1/instruments", &json!({"name": "reader"}))
        .await["id"]
        .clone();
    let scripts = scripts();
    let body = json!({
        "name": "Read plates",
        "code": scripts[1],
        "trigger_enabled": true,
        "trigger_category": "file_uploaded",
        "trigger_conditions": {"file_name_pattern": "plate*", "file_extensions": ["csv"]},
    });
    let job = lab.post("/api/v1/jobs", &body).await["id"].clone();
    let csv = "well,value\nA1,0.25\nA2,0.75\nA3,1.5\n";
    lab.upload(&instrument, "notes.csv", csv).await;
    let file = lab.upload(&instrument, "runs/plate 1.csv", csv).await;

    // The matching file starts one execution of the job, whether it succeeds or not.
    let path = format!("/api/v1/job-executions?job_id={}", job.as_str().unwrap());
    let executions = loop {
        let executions = lab.get(&path).await;
        if executions != json!([]) {
            break executions;
        }
    };
    assert_eq!(executions.as_array().unwrap().len(), 1);
    assert_eq!(executions[0]["trigger_file_id"], file);
    assert_eq!(executions[0]["script_version"], 1);

    // The script itself, as any machine could run it.
    let execution =
        lab.post("/api/v1/job-executions", &json!({})).await["job_execution_id"].clone();
    let ran = Command::new("python3")
        .args(["-c", scripts[1]])
        .env_clear()
        .env("PATH", std::env::var("PATH").unwrap())
        .env("LABDATA_BASE_URL", &lab.program.url)
        .env("LABDATA_API_KEY", &lab.key)
        .env("LABDATA_JOB_EXECUTION_ID", execution.as_str().unwrap())
        .env("LABDATA_FILE_ID", &file)
        .env("LABDATA_PARAMETERS", r#"{"threshold": 0.5}"#)
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    assert_eq!(text(&ran.stdout), "plate 1.csv: 2 readings\n");
    let wells = json!({
        "query": "SELECT well FROM reading WHERE created_by_execution_id = %s ORDER BY well",
        "params": [execution],
    });
    let wells = lab.post("/api/v1/tools/query", &wells).await;
    assert_eq!(wells["data"], json!([["A2"], ["A3"]]));
}

#[tokio::test]
async fn the_scripts_of_the_guide_run_on_the_platform() {
    let own = directory();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let uv = Python::find(None).and_then(|python| Uv::find(None, &target.join("tools"), &python));
    let uv = uv.expect("this test installs packages with uv");
    let settings = [
        ("LABDATA_UV", uv.program().to_str().unwrap()),
        ("LABDATA_JOB_ISOLATION", "none"),
    ];
    let lab = platform_runs::Lab::start_with(own.path(), &[], &settings);
    let columns = json!([
        {"name": "well", "data_type": "string"},
        {"name": "value", "data_type": "float"},
    ]);
    let table = json!({"semantic_category": "curated", "columns": columns});
    lab.call(Method::PUT, "/tables/reading", table).await;
    let instrument = json!({"name": "reader"});
    let instrument = lab.call(Method::POST, "/instruments", instrument).await["id"].clone();
    let csv = "well,value\nA1,0.25\nA2,0.75\nA3,1.5\n";
    let file = lab.upload(&instrument, "plate 1.csv", csv.into()).await;

    let scripts = scripts();
    assert_eq!(scripts.len(), 3);
    let mut readings = 0;
    for (name, script) in ["client", "standard library"].into_iter().zip(&scripts) {
        let job = lab.job(name, script).await;
        let body = json!({"file_id": file, "parameters": {"threshold": 0.5}});
        let run = lab
            .call(Method::POST, &format!("/jobs/{job}/run"), body)
            .await;
        let run = run["job_execution_id"].as_str().unwrap();
        let log = completed(&lab, run).await;
        assert!(log.ends_with(".csv: 2 readings\n"), "{log}");
        let wells = json!({
            "query": "SELECT well FROM reading WHERE created_by_execution_id = %s ORDER BY well",
            "params": [run],
        });
        let wells = lab.call(Method::POST, "/tools/query", wells).await;
        assert_eq!(wells["data"], json!([["A2"], ["A3"]]));
        readings += 2;
    }

    let run = lab.run(&lab.job("Summary", scripts[2]).await).await;
    completed(&lab, &run).await;
    let files = lab
        .call(Method::GET, "/files?query=summary.csv", Value::Null)
        .await;
    assert_eq!(files[0]["job_execution_id"], run, "{files}");
    let summary = lab
        .call(
            Method::GET,
            &format!("/files/{}/content", files[0]["file_id"].as_str().unwrap()),
            Value::Null,
        )
        .await;
    let summary = reqwest::get(summary["download_url"].as_str().unwrap());
    assert_eq!(
        summary.await.unwrap().text().await.unwrap(),
        format!("readings,{readings}\ngreatest,1.5\n")
    );
}

/// Waits until a run is completed, and returns its log.
async fn completed(lab: &platform_runs::Lab, run: &str) -> String {
    let ended = lab.ended(run).await;
    let log = lab.logs(run).await;
    assert_eq!(ended["status"], "completed", "{ended} {log}");
    log
}
