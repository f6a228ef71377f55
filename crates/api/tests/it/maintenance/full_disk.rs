//! A full disk: uploads and scripts stop, the platform does not. On a real file system.

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    time::Duration,
};

use labdata_test_database::TestDatabase;
use reqwest::{
    Client, Method,
    multipart::{Form, Part},
};
use serde_json::{Value, json};

use crate::process::{Program, directory};

const KEY: &str = "ldk_chosen77_0123456789abcdefghijklmnopqrstuvwxyz";

/// A server whose data directory is on a small disk.
struct Lab {
    program: Program,
    key: String,
    http: Client,
    data: PathBuf,
}

impl Lab {
    fn start(directory: &Path, megabytes: u32, environment: &[(&str, &str)]) -> Option<Self> {
        let mut all = vec![("LABDATA_BOOTSTRAP_KEY", KEY)];
        all.extend(environment);
        Self::start_after("", directory, megabytes, &all)
    }

    /// Starts it after shell commands, in which `$1` is the program.
    fn start_after(
        before: &str,
        directory: &Path,
        megabytes: u32,
        environment: &[(&str, &str)],
    ) -> Option<Self> {
        let mut all = vec![("LABDATA_JOB_ISOLATION", "none")];
        all.extend(environment);
        let program = Program::serve_on_small_disk(directory, &all, megabytes, before)?;
        let data = program.path_from_outside(&directory.join(".labdata"));
        Some(Self {
            program,
            key: KEY.to_owned(),
            http: Client::new(),
            data,
        })
    }

    async fn ask(&self, key: &str, method: Method, path: &str, body: Value) -> (u16, Value) {
        let url = format!("{}/api/v1{path}", self.program.url);
        let request = self.http.request(method, url).bearer_auth(key).json(&body);
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        (status, response.json().await.unwrap_or(Value::Null))
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        self.ask(&self.key, Method::GET, path, Value::Null).await
    }

    async fn ask_text(&self, path: &str) -> String {
        let url = format!("{}/api/v1{path}", self.program.url);
        let response = self
            .http
            .get(url)
            .bearer_auth(&self.key)
            .send()
            .await
            .unwrap();
        response.text().await.unwrap()
    }

    async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.ask(&self.key, Method::POST, path, body).await
    }

    async fn instrument(&self) -> String {
        let (status, made) = self.post("/instruments", json!({ "name": "reader" })).await;
        assert_eq!(status, 200, "{made}");
        made["id"].as_str().unwrap().to_owned()
    }

    async fn upload(&self, instrument: &str, name: &str, bytes: usize) -> (u16, Value) {
        let file = Part::bytes(vec![b'x'; bytes]).file_name(name.to_owned());
        let form = Form::new()
            .text("instrument_id", instrument.to_owned())
            .part("file", file);
        let url = format!("{}/api/v1/files", self.program.url);
        let request = self.http.post(url).bearer_auth(&self.key).multipart(form);
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    /// Imports a file of about that many bytes; its rows are experiments.
    async fn import(&self, bytes: usize) -> (u16, Value) {
        let rows = (0..bytes / 8).map(|number| format!("{number:07}\n"));
        let text = format!("name\n{}", rows.collect::<String>());
        let form = Form::new()
            .text("mode", "insert")
            .part("file", Part::text(text).file_name("rows.csv"));
        let url = format!("{}/api/v1/tables/experiment/import", self.program.url);
        let request = self.http.post(url).bearer_auth(&self.key).multipart(form);
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    async fn begin(&self, instrument: &str, name: &str) -> (u16, Value) {
        let body = json!({ "file_name": name, "instrument_id": instrument });
        self.post("/files/upload-url", body).await
    }

    async fn put(&self, begun: &Value, bytes: usize) -> (u16, String) {
        let url = begun["upload_url"].as_str().unwrap();
        let mut request = self.http.put(url).body(vec![b'x'; bytes]);
        for (name, value) in begun["headers"].as_object().unwrap() {
            request = request.header(name, value.as_str().unwrap());
        }
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    }

    async fn run(&self, code: &str) -> String {
        let (_, job) = self
            .post("/jobs", json!({ "name": "job", "code": code }))
            .await;
        let path = format!("/jobs/{}/run", job["id"].as_str().unwrap());
        let (status, run) = self.post(&path, json!({})).await;
        assert_eq!(status, 200, "{run}");
        run["job_execution_id"].as_str().unwrap().to_owned()
    }

    /// The execution, once it has ended. Answers other than 200 are not looked at.
    async fn ended(&self, run: &str) -> Value {
        loop {
            let (status, execution) = self.get(&format!("/job-executions/{run}")).await;
            if status == 200 && !execution["completed_at"].is_null() {
                return execution;
            }
            pause().await;
        }
    }

    /// Takes all free space of the disk but that many bytes.
    fn fill(&self, left: u64) -> Filler {
        let filler = Filler(self.data.join("filler"));
        let length = filler.take_all();
        let file = File::options().write(true).open(&filler.0).unwrap();
        file.set_len(length - left).unwrap();
        filler
    }

    /// Directories of scripts on the disk.
    fn scratch(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let workers = fs::read_dir(self.data.join("jobs/workers")).unwrap();
        for worker in workers.flatten().filter(|it| it.path().is_dir()) {
            let runs = fs::read_dir(worker.path()).unwrap().flatten();
            found.extend(runs.map(|run| run.path().join("scratch")));
        }
        found.retain(|scratch| scratch.exists());
        found
    }
}

/// Another program's file; removed when dropped.
struct Filler(PathBuf);

impl Filler {
    /// Takes all free space; returns the bytes that it has then.
    fn take_all(&self) -> u64 {
        let mut file = File::options()
            .create(true)
            .append(true)
            .open(&self.0)
            .unwrap();
        for size in [1 << 20, 4096] {
            let zeros = vec![0; size];
            while file.write_all(&zeros).is_ok() {}
        }
        file.metadata().unwrap().len()
    }
}

impl Drop for Filler {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.0));
    }
}

async fn pause() {
    tokio::time::sleep(Duration::from_millis(20)).await;
}

#[tokio::test]
async fn a_full_disk_refuses_uploads_with_507_and_reads_go_on_until_there_is_room() {
    let (directory, database) = (directory(), TestDatabase::new().await);
    let environment = [("DATABASE_URL", database.url())];
    let Some(lab) = Lab::start(directory.path(), 64, &environment) else {
        return;
    };
    let instrument = lab.instrument().await;
    let (status, stored) = lab.upload(&instrument, "a.csv", 1 << 20).await;
    assert_eq!(status, 200, "{stored}");
    let (_, begun) = lab.begin(&instrument, "b.csv").await;

    // Less than the floor of a twentieth is left, and then nothing.
    for left in [3 << 20, 0] {
        let filler = lab.fill(left);
        let (status, refused) = lab.upload(&instrument, "c.csv", 100).await;
        assert_eq!(status, 507, "{refused}");
        let detail = refused["detail"].as_str().unwrap();
        assert!(detail.contains("disk is full"), "{detail}");
        assert_eq!(lab.begin(&instrument, "d.csv").await.0, 507);
        let (status, refused) = lab.put(&begun, 100).await;
        assert_eq!(status, 507, "{refused}");
        assert!(refused.contains("<Code>InsufficientStorage</Code>"));

        let id = stored["file_id"].as_str().unwrap();
        let (status, content) = lab.get(&format!("/files/{id}/content")).await;
        assert_eq!(status, 200, "{content}");
        let url = content["download_url"].as_str().unwrap();
        let bytes = lab.http.get(url).send().await.unwrap().bytes().await;
        assert_eq!(bytes.unwrap().len(), 1 << 20);
        assert_eq!(lab.get("/files").await.1.as_array().unwrap().len(), 1);
        drop(filler);
    }
    assert_eq!(lab.upload(&instrument, "c.csv", 100).await.0, 200);
    assert_eq!(lab.put(&begun, 100).await.0, 200);
    let path = format!(
        "/files/{}/confirm-upload",
        begun["file_id"].as_str().unwrap()
    );
    assert_eq!(lab.post(&path, json!({})).await.0, 200);
}

#[tokio::test]
async fn an_upload_that_fills_the_disk_is_cut_off_at_the_floor() {
    let (directory, database) = (directory(), TestDatabase::new().await);
    let environment = [("DATABASE_URL", database.url())];
    let Some(lab) = Lab::start(directory.path(), 128, &environment) else {
        return;
    };
    let instrument = lab.instrument().await;
    let (_, begun) = lab.begin(&instrument, "big.bin").await;
    // 150 MB, whose length is not announced.
    let chunks = std::iter::repeat_n(vec![b'x'; 1 << 20], 150).map(Ok::<_, std::io::Error>);
    let mut request = lab.http.put(begun["upload_url"].as_str().unwrap());
    for (name, value) in begun["headers"].as_object().unwrap() {
        request = request.header(name, value.as_str().unwrap());
    }
    let body = reqwest::Body::wrap_stream(futures::stream::iter(chunks));
    let response = request.body(body).send().await.unwrap();
    assert_eq!(response.status(), 507, "{}", response.text().await.unwrap());
    // One whose length is announced is refused before it is read.
    let filler = lab.fill(20 << 20);
    assert_eq!(lab.put(&begun, 30 << 20).await.0, 507);
    drop(filler);
    let incoming = fs::read_dir(lab.data.join("objects/incoming")).unwrap();
    assert_eq!(incoming.count(), 0);
    assert_eq!(lab.put(&begun, 100).await.0, 200);
}

#[tokio::test]
async fn an_import_that_fills_the_disk_stores_nothing_and_gives_its_bytes_back() {
    let (directory, database) = (directory(), TestDatabase::new().await);
    let spool = directory.path().join(".labdata");
    let environment = [
        ("DATABASE_URL", database.url()),
        ("TMPDIR", spool.to_str().unwrap()),
        ("LABDATA_STORAGE_QUOTA", "12000000"),
    ];
    let Some(lab) = Lab::start(directory.path(), 64, &environment) else {
        return;
    };
    let instrument = lab.instrument().await;
    // The disk ends between two checks of its floor, and a file is cut off at the floor.
    for (left, bytes) in [(5 << 20, 7 << 20), (10 << 20, 9 << 20)] {
        let filler = lab.fill(left);
        let (status, refused) = lab.import(bytes).await;
        assert_eq!(
            (status, &refused["code"]),
            (507, &json!("disk_full")),
            "{refused}"
        );
        // All of them but some that logs may have taken.
        let given_back = filler.0.metadata().unwrap().len() + left - (1 << 20);
        while filler.take_all() < given_back {
            pause().await;
        }
    }
    assert_eq!(lab.get("/files").await.1, json!([]));
    let count = json!({ "query": "select count(*) as n from experiment" });
    assert_eq!(
        lab.post("/tools/query", count.clone()).await.1["data"],
        json!([[0]])
    );
    // More than the quota has beside one of the refused files.
    let (_, begun) = lab.begin(&instrument, "a.csv").await;
    assert_eq!(lab.put(&begun, 10_000_000).await.0, 200);
    let (status, imported) = lab.import(80).await;
    assert_eq!(status, 200, "{imported}");
    assert_eq!(
        lab.post("/tools/query", count).await.1["data"],
        json!([[10]])
    );
}

#[tokio::test]
async fn a_run_whose_disk_is_full_ends_and_its_end_is_recorded_without_a_restart() {
    let directory = directory();
    let Some(lab) = Lab::start(directory.path(), 512, &[]) else {
        return;
    };
    let instrument = lab.instrument().await;
    let (status, stored) = lab.upload(&instrument, "a.csv", 1000).await;
    assert_eq!(status, 200, "{stored}");
    let run = lab
        .run("import time\nopen('held', 'wb').write(bytes([1]) * (1 << 20))\nprint('begun', flush=True)\ntime.sleep(600)\n")
        .await;
    let log = format!("/job-executions/{run}/logs");
    while !lab.ask_text(&log).await.contains("begun") {
        pause().await;
    }
    let filler = lab.fill(0);
    let reserve = lab.data.join("postgres.reserve");
    // The supervisor ends the script, and its files go although the disk is full.
    while reserve.exists() || !lab.scratch().is_empty() {
        filler.take_all();
        pause().await;
    }
    for _ in 0..20 {
        // Another program takes what the platform gives up.
        filler.take_all();
        let (status, refused) = lab.upload(&instrument, "b.csv", 1000).await;
        assert!(matches!(status, 503 | 507), "{status} {refused}");
    }
    drop(filler);
    let ended = lab.ended(&run).await;
    assert_eq!(ended["status"], "failed", "{ended}");
    let why = ended["error_message"].as_str().unwrap();
    assert!(why.contains("disk of the worker is almost full"), "{why}");
    let mut status = 0;
    while status != 200 {
        let (found, response) = lab.upload(&instrument, "b.csv", 1000).await;
        assert!(matches!(found, 200 | 503 | 507), "{found} {response}");
        status = found;
        pause().await;
    }
    assert_eq!(fs::metadata(reserve).unwrap().len(), 64 << 20);
}

#[tokio::test]
async fn a_script_that_fills_its_scratch_does_not_fail_the_writes_of_another_organization() {
    let directory = directory();
    let create = |letter: &str| {
        format!(
            "\"$1\" api-key create --organization \"Lab {letter}\" --user {letter}@example.org \
             --scopes read,write,admin > {letter}.key && "
        )
    };
    let both = create("a") + &create("b");
    let Some(mut lab) = Lab::start_after(&both, directory.path(), 512, &[]) else {
        return;
    };
    let [own, other] = ["a.key", "b.key"].map(|name| {
        let made = fs::read_to_string(directory.path().join(name)).unwrap();
        let key = made.lines().find(|line| line.starts_with("ldk_"));
        key.unwrap_or_else(|| panic!("{made}")).to_owned()
    });
    lab.key = own;
    let run = lab
        .run("n = 0\nwhile True:\n    open(str(n), 'wb').write(bytes([1]) * (1 << 20))\n    n += 1\n")
        .await;
    let mut statuses = Vec::new();
    let mut number = 0;
    let ended = loop {
        let name = format!("reader {number}");
        let body = json!({ "name": name });
        let (status, _) = lab.ask(&other, Method::POST, "/instruments", body).await;
        statuses.push(status);
        number += 1;
        let (status, execution) = lab.get(&format!("/job-executions/{run}")).await;
        assert!(matches!(status, 200 | 503), "{execution}");
        if status == 200 && !execution["completed_at"].is_null() {
            break execution;
        }
    };
    assert_eq!(ended["status"], "failed", "{ended}");
    statuses.sort_unstable();
    statuses.dedup();
    // No room for a moment, or the database recovers.
    let expected = |status: &u16| matches!(status, 200 | 503 | 507);
    assert!(statuses.iter().all(expected), "{statuses:?}");
    assert!(lab.scratch().is_empty());
    let mut status = 0;
    while status != 200 {
        let body = json!({ "name": "the last" });
        (status, _) = lab.ask(&other, Method::POST, "/instruments", body).await;
        assert!(expected(&status), "{status}");
        pause().await;
    }
}
