//! The examples of docs/WRITING-JOBS.md, run against the built program.

use std::process::Command;

use reqwest::{
    Client,
    multipart::{Form, Part},
};
use serde_json::{Value, json};

use crate::process::{Program, directory, text};

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
    async fn call(&self, method: reqwest::Method, path: &str, body: &Value) -> Value {
        let request = self
            .client
            .request(method, format!("{}{path}", self.program.url))
            .bearer_auth(&self.key)
            .json(body);
        Self::answer(request).await
    }

    async fn answer(request: reqwest::RequestBuilder) -> Value {
        let answer = request.send().await.unwrap();
        let status = answer.status();
        let body = answer.text().await.unwrap();
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        self.call(reqwest::Method::POST, path, body).await
    }

    async fn get(&self, path: &str) -> Value {
        self.call(reqwest::Method::GET, path, &Value::Null).await
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
        let file = Self::answer(request).await;
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
    lab.call(reqwest::Method::PUT, "/api/v1/tables/reading", &table)
        .await;
    let instrument = lab
        .post("/api/v1/instruments", &json!({"name": "reader"}))
        .await["id"]
        .clone();
    let scripts = scripts();
    let body = json!({
        "name": "Read plates",
        "code": scripts[0],
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
        .args(["-c", scripts[0]])
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
async fn every_script_of_the_guide_can_be_a_job() {
    let server = crate::server::TestServer::start().await;
    let client = server.admin().await;
    assert_eq!(scripts().len(), 2);
    for (number, code) in scripts().into_iter().enumerate() {
        let body = json!({"name": format!("job {number}"), "code": code});
        client.post("/api/v1/jobs", &body).await.json(200);
    }
}
