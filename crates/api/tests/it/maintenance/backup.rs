//! `labdata backup` beside a running server, and `labdata restore` on a machine that has nothing.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use labdata_domain::{
    files::{ContentType, FilePath, ObjectKey},
    ids::OrganizationId,
};
use labdata_object_store::GatewaySigner;
use labdata_ports::files::blob::{DownloadGrant, UrlSigner};
use labdata_test_database::TestDatabase;
use reqwest::{
    Method,
    multipart::{Form, Part},
};
use serde_json::{Value, json};

use crate::{
    process::{Program, directory, labdata, postgresql_programs, run, text},
    s3_server::S3Server,
};

const KEY: &str = "ldk_chosen77_0123456789abcdefghijklmnopqrstuvwxyz";

/// Every file below a directory.
fn files_below(directory: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(directory)
        .unwrap()
        .map(|it| it.unwrap().path());
    let below = |path: PathBuf| {
        if path.is_dir() {
            files_below(&path)
        } else {
            vec![path]
        }
    };
    paths.flat_map(below).collect()
}

/// Runs a command of the program to its end, beside this test's own tasks.
async fn command(place: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = labdata(place, arguments);
    command.envs(environment.iter().copied());
    tokio::task::spawn_blocking(move || run(&mut command))
        .await
        .unwrap()
}

fn succeeded(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    text(&output.stdout)
}

/// The line with which a command was refused.
fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    text(&output.stderr)
}

/// A client of a running program.
#[derive(Clone)]
struct Lab {
    http: reqwest::Client,
    url: String,
    key: String,
}

impl Lab {
    fn of(program: &Program) -> Self {
        Self {
            http: reqwest::Client::new(),
            url: format!("{}/api/v1", program.url),
            key: program.key.clone().unwrap_or_else(|| KEY.to_owned()),
        }
    }

    async fn call(&self, method: Method, path: &str, body: Value) -> Value {
        let request = self.http.request(method, format!("{}/{path}", self.url));
        let response = request.bearer_auth(&self.key).json(&body).send().await;
        let response = response.unwrap();
        let (status, body) = (response.status(), response.json().await.unwrap());
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    /// A table of samples with curves.
    async fn define(&self) {
        let samples = json!({"semantic_category": "curated", "columns": [
            {"name": "name", "data_type": "string", "is_unique": true}]});
        self.call(Method::PUT, "tables/sample", samples).await;
        let curves = json!({"semantic_category": "raw", "columns": [
            {"name": "sample", "data_type": "string", "references": "sample"},
            {"name": "hours", "data_type": "float"}]});
        self.call(Method::PUT, "tables/curve", curves).await;
    }

    /// A sample with a curve, in a separate execution.
    async fn write(&self, name: &str) {
        let run = self
            .call(Method::POST, "job-executions", json!({"job_name": "test"}))
            .await;
        let write = json!({"job_execution_id": run["job_execution_id"],
            "tables": [{"table": "sample", "rows": [{"_ref": "s", "name": name}]}],
            "series": [{"table": "curve", "parent": "@s", "columns": {"hours": [0.5, 1.0, 2.5]}}]});
        self.call(Method::POST, "data/write", write).await;
    }

    async fn upload(&self, name: &str, bytes: &[u8]) -> String {
        let instrument = json!({"name": name, "instrument_type": "reader"});
        let instrument = self.call(Method::POST, "instruments", instrument).await;
        let form = Form::new()
            .text(
                "instrument_id",
                instrument["id"].as_str().unwrap().to_owned(),
            )
            .part(
                "file",
                Part::bytes(bytes.to_vec()).file_name(name.to_owned()),
            );
        let request = self.http.post(format!("{}/files", self.url));
        let response = request.bearer_auth(&self.key).multipart(form).send().await;
        let file: Value = response.unwrap().json().await.unwrap();
        let id = file["file_id"].as_str();
        id.unwrap_or_else(|| panic!("{file}")).to_owned()
    }

    /// The bytes of a file; `None` if there is no such file.
    async fn content(&self, file: &str) -> Option<Vec<u8>> {
        let request = self.http.get(format!("{}/files/{file}/content", self.url));
        let response = request.bearer_auth(&self.key).send().await.unwrap();
        if response.status() == 404 {
            return None;
        }
        let content: Value = response.json().await.unwrap();
        let url = content["download_url"].as_str().unwrap();
        let bytes = self.http.get(url).send().await.unwrap();
        assert_eq!(bytes.status(), 200);
        Some(bytes.bytes().await.unwrap().to_vec())
    }

    async fn delete(&self, file: &str) {
        let request = self.http.delete(format!("{}/files/{file}", self.url));
        let response = request.bearer_auth(&self.key).send().await.unwrap();
        assert!(response.status().is_success(), "{}", response.status());
    }

    async fn drop_table(&self, table: &str) {
        let url = format!("{}/tables/{table}?force=true", self.url);
        let response = self.http.delete(url).bearer_auth(&self.key).send().await;
        assert_eq!(response.unwrap().status(), 204);
    }

    /// Names of all samples, in order, by a query, which runs as the organization's own role.
    async fn samples(&self) -> Vec<String> {
        let query = json!({"query": "SELECT name FROM sample ORDER BY name"});
        let found = self.call(Method::POST, "tools/query", query).await;
        let rows = found["data"].as_array().unwrap();
        let name = |row: &Value| row[0].as_str().unwrap().to_owned();
        rows.iter().map(name).collect()
    }

    /// Number of points of the curves.
    async fn points(&self) -> i64 {
        let query = json!({"query": "SELECT count(*) AS points FROM curve"});
        let found = self.call(Method::POST, "tools/query", query).await;
        found["data"][0][0].as_i64().unwrap()
    }
}

#[tokio::test]
async fn a_copy_made_while_scripts_write_restores_into_a_machine_that_has_nothing() {
    let (here, there) = (directory(), directory());
    let program = Program::serve(here.path(), &[]);
    let lab = Lab::of(&program);
    lab.define().await;
    lab.write("before").await;
    let bytes: Vec<u8> = (0..300_000_u32).map(|n| n.to_le_bytes()[1]).collect();
    let file = lab.upload("plate.bin", &bytes).await;
    let deleted = lab.upload("gone.bin", b"gone").await;
    lab.delete(&deleted).await;
    let columns = json!([{"name": "text", "data_type": "text"}]);
    let definition = json!({"semantic_category": "curated", "columns": columns});
    lab.call(Method::PUT, "tables/dropped", definition).await;
    let rows =
        json!({"job_name": "rows", "tables": [{"table": "dropped", "rows": [{"text": "kept"}]}]});
    lab.call(Method::POST, "data/write", rows).await;
    lab.drop_table("dropped").await;

    let is_done = Arc::new(AtomicBool::new(false));
    let writer = tokio::spawn({
        let (lab, is_done) = (lab.clone(), Arc::clone(&is_done));
        async move {
            let mut count = 0;
            while !is_done.load(Ordering::Relaxed) {
                lab.write(&format!("w{count:05}")).await;
                count += 1;
            }
            count
        }
    });
    let copy = here.path().join("copies/monday");
    let copy = copy.to_str().unwrap();
    let printed = succeeded(&command(here.path(), &["backup", copy], &[]).await);
    is_done.store(true, Ordering::Relaxed);
    let written: usize = writer.await.unwrap();
    assert!(printed.contains("2 objects of 300004 bytes"), "{printed}");
    let mode = fs::metadata(copy).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);

    // What happens after the copy is not in it.
    lab.write("z, after").await;
    lab.delete(&file).await;
    let key = program.key.clone();
    drop(program);

    let printed = succeeded(&command(there.path(), &["restore", copy], &[]).await);
    assert!(printed.contains("2 objects of 300004 bytes"), "{printed}");
    let restored = Program::serve(there.path(), &[]);
    let lab = Lab {
        key: key.unwrap(),
        ..Lab::of(&restored)
    };
    assert!(lab.content(&file).await == Some(bytes));
    assert_eq!(lab.content(&deleted).await, None);
    // The trash is part of the copy, with its files and tables.
    let trash = lab.call(Method::GET, "trash", Value::Null).await;
    let entries = trash.as_array().unwrap().clone();
    assert_eq!(entries.len(), 2, "{trash}");
    for entry in entries {
        let restore = format!("trash/{}/restore", entry["id"].as_str().unwrap());
        lab.call(Method::POST, &restore, Value::Null).await;
    }
    assert_eq!(lab.content(&deleted).await, Some(b"gone".to_vec()));
    let query = json!({"query": "SELECT text FROM dropped"});
    let found = lab.call(Method::POST, "tools/query", query).await;
    assert_eq!(found["data"], json!([["kept"]]));
    let samples = lab.samples().await;
    assert_eq!(samples[0], "before");
    // A state of one moment: a prefix of the writes, each with its curve.
    let begun = samples.len() - 1;
    assert!(begun <= written);
    let expected: Vec<String> = (0..begun).map(|count| format!("w{count:05}")).collect();
    assert_eq!(samples[1..], expected);
    assert_eq!(
        lab.points().await,
        3 * i64::try_from(samples.len()).unwrap()
    );
    // It takes writes like any other.
    lab.write("new").await;

    // A platform that is in use is never restored into.
    let again = refused(&command(there.path(), &["restore", copy], &[]).await);
    assert!(again.contains("the database is in use"), "{again}");
    assert_eq!(lab.samples().await.len(), samples.len() + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_a_bucket_are_listed_and_copied_on_request_only() {
    let (here, own) = (directory(), TestDatabase::new().await);
    let bucket = S3Server::start().await;
    let mut environment = bucket.environment().to_vec();
    environment.extend([
        ("LABDATA_STORAGE_URL", "s3://lab/one"),
        ("DATABASE_URL", own.url()),
        ("LABDATA_BOOTSTRAP_KEY", KEY),
    ]);
    let program = Program::serve(here.path(), &environment);
    let file = Lab::of(&program).upload("plate.csv", b"1,2,3").await;

    let printed = succeeded(&command(here.path(), &["backup", "listed"], &environment).await);
    assert!(printed.contains("stay in s3://lab/one"), "{printed}");
    assert!(!here.path().join("listed/objects").exists());
    let copied = ["backup", "--objects", "copied"];
    succeeded(&command(here.path(), &copied, &environment).await);
    assert!(here.path().join("copied/objects").is_dir());
    drop(program);
    let mut emptied = environment.clone();
    emptied.push(("LABDATA_STORAGE_URL", "s3://lab/empty"));
    let output = command(here.path(), &["backup", "lacking"], &emptied).await;
    let said = refused(&output);
    assert!(said.contains("the backup lacks 1 objects"), "{said}");
    assert!(here.path().join("lacking/manifest.json").exists());

    for (backup, storage, is_lost) in [
        ("listed", "s3://lab/one", false),
        ("copied", "s3://lab/two", false),
        ("listed", "s3://lab/three", true),
    ] {
        let empty = TestDatabase::unmigrated().await;
        let mut environment = bucket.environment().to_vec();
        environment.extend([
            ("LABDATA_STORAGE_URL", storage),
            ("DATABASE_URL", empty.url()),
            ("LABDATA_BOOTSTRAP_KEY", KEY),
        ]);
        let restored = command(here.path(), &["restore", backup], &environment).await;
        succeeded(&restored);
        let warning = text(&restored.stderr);
        // A bucket that has lost an object is said, and the rest is restored.
        assert_eq!(
            warning.contains("has not got 1 objects"),
            is_lost,
            "{warning}"
        );
        let program = Program::serve(here.path(), &environment);
        if !is_lost {
            let content = Lab::of(&program).content(&file).await;
            assert_eq!(content, Some(b"1,2,3".to_vec()), "{backup}");
        }
    }
}

#[tokio::test]
async fn what_is_no_whole_backup_is_refused_before_anything_changes() {
    let (here, own) = (directory(), TestDatabase::new().await);
    let environment = [("DATABASE_URL", own.url())];
    let program = Program::serve(here.path(), &environment);
    let lab = Lab::of(&program);
    lab.upload("plate.csv", b"1,2,3").await;
    succeeded(&command(here.path(), &["backup", "copy"], &environment).await);

    let again = refused(&command(here.path(), &["backup", "copy"], &environment).await);
    assert!(again.contains("is not empty"), "{again}");
    assert!(here.path().join("copy/manifest.json").exists());

    let empty = TestDatabase::unmigrated().await;
    let place = directory();
    let target = [("DATABASE_URL", empty.url())];
    let copy = here.path().join("copy");
    let restore = ["restore", copy.to_str().unwrap()];
    let hurt = |name: &str, bytes: &[u8]| {
        let path = copy.join(name);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, bytes).unwrap();
        (path, whole)
    };
    let object = files_below(&copy.join("objects")).pop().unwrap();
    let object = object.strip_prefix(&copy).unwrap().to_str().unwrap();
    for (name, bytes, said) in [
        (
            "database.dump",
            b"PGDMP".as_slice(),
            "database.dump is not what the backup wrote",
        ),
        (
            "objects.jsonl",
            b"",
            "objects.jsonl is not what the backup wrote",
        ),
        (object, b"1,2,4", "of the backup is damaged"),
        ("manifest.json", b"{}", "manifest.json is broken"),
        ("manifest.json", br#"{"format": 99}"#, "the format 99"),
    ] {
        let (path, whole) = hurt(name, bytes);
        let said_now = refused(&command(place.path(), &restore, &target).await);
        assert!(said_now.contains(said), "{said_now}");
        fs::write(path, whole).unwrap();
    }
    // None of the refused ones has spoiled the target.
    succeeded(&command(place.path(), &restore, &target).await);
    fs::remove_file(copy.join("manifest.json")).unwrap();
    let no_manifest = refused(&command(place.path(), &restore, &target).await);
    assert!(no_manifest.contains("is no whole backup"), "{no_manifest}");

    let nothing = directory();
    let none = refused(&command(nothing.path(), &["backup", "copy"], &[]).await);
    assert!(none.contains("there is nothing to copy"), "{none}");
    assert_eq!(fs::read_dir(nothing.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_backup_whose_files_cannot_be_written_fails_and_is_not_restored() {
    let (here, own) = (directory(), TestDatabase::new().await);
    let environment = [("DATABASE_URL", own.url())];
    let program = Program::serve(here.path(), &environment);
    Lab::of(&program).upload("plate.csv", b"1,2,3").await;
    let empty = TestDatabase::unmigrated().await;
    let (place, target) = (directory(), [("DATABASE_URL", empty.url())]);
    for blocks in [0, 1, 8, 64] {
        let name = format!("copy {blocks}");
        // Writes beyond that size of a file fail, as on a full disk.
        let script = format!("ulimit -f {blocks}; exec \"$0\" backup \"$1\"");
        let mut limited = Command::new("sh");
        limited
            .args(["-c", &script, env!("CARGO_BIN_EXE_labdata"), &name])
            .current_dir(here.path())
            .envs(environment);
        let output = tokio::task::spawn_blocking(move || run(&mut limited)).await;
        let output = output.unwrap();
        assert!(!output.status.success(), "{blocks}: {output:?}");
        let copy = here.path().join(&name);
        let restore = ["restore", copy.to_str().unwrap()];
        let said = refused(&command(place.path(), &restore, &target).await);
        assert!(said.contains("is no whole backup"), "{blocks}: {said}");
    }
    succeeded(&command(here.path(), &["backup", "copy"], &environment).await);
    let copy = here.path().join("copy");
    let restore = ["restore", copy.to_str().unwrap()];
    succeeded(&command(place.path(), &restore, &target).await);
}

/// Everything in a copy of a database that may be a secret: values of 32 bytes.
fn possible_secrets(place: &Path, copy: &Path) -> Vec<[u8; 32]> {
    let mut command = std::process::Command::new(postgresql_programs(place).join("pg_restore"));
    command.arg("--file=-").arg(copy.join("database.dump"));
    let script = succeeded(&run(&mut command));
    let hex = |digits: &str| {
        let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
        let bytes: Option<Vec<u8>> = (0..64).step_by(2).map(byte).collect();
        bytes?.try_into().ok()
    };
    script.split("\\\\x").filter_map(hex).collect()
}

/// The status of a download by a URL that is made with a secret, for the object of a real URL.
async fn forged(program: &Program, real: &str, secret: &[u8; 32]) -> u16 {
    let path = real.split('?').next().unwrap();
    let mut parts = path.rsplit('/');
    let object: uuid::Uuid = parts.next().unwrap().parse().unwrap();
    let organization: uuid::Uuid = parts.next().unwrap().parse().unwrap();
    let grant = DownloadGrant {
        object: ObjectKey::new(object),
        path: FilePath::parse("stolen.csv").unwrap(),
        content_type: ContentType::substitute(None),
        expires_at: time::OffsetDateTime::UNIX_EPOCH + time::Duration::days(40_000),
    };
    let signer = GatewaySigner::new(&program.url, secret);
    let url = signer.sign_download(OrganizationId::new(organization), &grant);
    let response = reqwest::get(url.await.unwrap()).await.unwrap();
    response.status().as_u16()
}

#[tokio::test]
async fn whoever_reads_a_copy_cannot_sign_a_download() {
    let (here, own) = (directory(), TestDatabase::new().await);
    let environment = [("DATABASE_URL", own.url()), ("LABDATA_BOOTSTRAP_KEY", KEY)];
    let program = Program::serve(here.path(), &environment);
    let lab = Lab::of(&program);
    let file = lab.upload("plate.csv", b"1,2,3").await;
    let path = format!("files/{file}/content");
    let content = lab.call(Method::GET, &path, Value::Null).await;
    let real = content["download_url"].as_str().unwrap().to_owned();
    succeeded(&command(here.path(), &["backup", "copy"], &environment).await);

    let (client, connection) = tokio_postgres::connect(own.url(), tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    let secrets = client
        .query("SELECT secret FROM labdata.server_secret", &[])
        .await
        .unwrap();
    let secrets = secrets.iter().map(|row| row.get::<_, Vec<u8>>(0));
    let secrets: Vec<[u8; 32]> = secrets.map(|secret| secret.try_into().unwrap()).collect();
    // The forgery itself works.
    let mut statuses = Vec::new();
    for secret in &secrets {
        statuses.push(forged(&program, &real, secret).await);
    }
    assert!(statuses.contains(&200), "{statuses:?}");

    let found = possible_secrets(here.path(), &here.path().join("copy"));
    // Hashes of keys are in it.
    assert!(!found.is_empty());
    for secret in &found {
        assert_eq!(forged(&program, &real, secret).await, 403);
        assert!(!secrets.contains(secret));
    }
}
