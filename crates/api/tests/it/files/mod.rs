//! `/api/v1/files` and the signed URLs that it gives out, on a local disk.

use std::sync::Arc;

use labdata_application::Services;
use labdata_domain::storage::StorageQuota;
use labdata_memory::FixedClock;
use labdata_object_store::{GatewaySigner, LocalBlobStore};
use labdata_ports::Clock;
use reqwest::{
    Method,
    header::{CONTENT_TYPE, HeaderMap},
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::server::{Client, Reply, TestServer, in_memory, send};

mod bucket;
mod content;
mod faults;
mod list;
mod quota;
mod racing_puts;
mod signed_download;
mod signed_upload;
mod upload;

const PATH: &str = "/api/v1/files";
/// Prefix of signed URLs before the server's port is known.
const SIGNED: &str = "http://files.invalid";
const BOUNDARY: &str = "a-boundary-of-a-test";

/// A server with a private directory for its files.
struct Lab {
    server: TestServer,
    client: Client,
    instrument: String,
    execution: String,
    directory: TempDir,
}

impl Lab {
    async fn start() -> Self {
        Self::with_quota(StorageQuota::UNLIMITED).await
    }

    /// With that quota of files per organization.
    async fn with_quota(storage_quota: StorageQuota) -> Self {
        Self::with(|services| services.storage_quota = storage_quota).await
    }

    /// With settings that the test changes.
    async fn with(change: impl FnOnce(&mut Services)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let clock = Arc::new(FixedClock::default());
        let time: Arc<dyn Clock> = clock.clone();
        let mut services = in_memory(time);
        services.blobs = Arc::new(LocalBlobStore::open(directory.path()).await.unwrap());
        services.signer = Arc::new(GatewaySigner::new(SIGNED, &[9; 32]));
        change(&mut services);
        let server = TestServer::start_on(services, clock).await;
        let client = server.admin().await;
        let instrument = instrument(&client, "reader").await;
        let execution = execution(&client).await;
        Self {
            server,
            client,
            instrument,
            execution,
            directory,
        }
    }

    /// The URL as the server serves it.
    fn local(&self, signed: &str) -> String {
        let path = signed
            .strip_prefix(SIGNED)
            .unwrap_or_else(|| panic!("{signed}"));
        format!("http://{}{path}", self.server.address)
    }

    /// Calls a signed URL as anybody could.
    async fn call(&self, method: Method, signed: &str, headers: &[(&str, &str)]) -> Reply {
        let mut request = self.server.anonymous().request(method, &self.local(signed));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        send(request).await
    }

    /// Uploads a file of the instrument's and returns its id.
    async fn upload(&self, name: &str, bytes: &[u8]) -> String {
        let form = Form::new()
            .field("instrument_id", &self.instrument)
            .file(name, bytes);
        id(&form.post(&self.client).await.json(200))
    }

    async fn content(&self, id: &str) -> Value {
        self.client
            .get(&format!("{PATH}/{id}/content"))
            .await
            .json(200)
    }

    /// Counts the objects in the storage, finished or not.
    fn stored(&self) -> usize {
        count(self.directory.path())
    }
}

fn count(directory: &std::path::Path) -> usize {
    let entries = std::fs::read_dir(directory).unwrap();
    entries
        .map(|entry| {
            let path = entry.unwrap().path();
            if path.is_dir() { count(&path) } else { 1 }
        })
        .sum()
}

async fn instrument(client: &Client, name: &str) -> String {
    let made = client
        .post("/api/v1/instruments", &json!({ "name": name }))
        .await
        .json(200);
    made["id"].as_str().unwrap().to_owned()
}

async fn execution(client: &Client) -> String {
    let made = client
        .post("/api/v1/job-executions", &json!({}))
        .await
        .json(200);
    made["job_execution_id"].as_str().unwrap().to_owned()
}

fn id(file: &Value) -> String {
    file["file_id"]
        .as_str()
        .unwrap_or_else(|| panic!("{file}"))
        .to_owned()
}

/// A multipart form, put together byte by byte.
#[derive(Clone, Default)]
pub(crate) struct Form(Vec<u8>);

impl Form {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    fn part(mut self, head: &str, bytes: &[u8]) -> Self {
        self.0
            .extend_from_slice(format!("--{BOUNDARY}\r\n{head}\r\n\r\n").as_bytes());
        self.0.extend_from_slice(bytes);
        self.0.extend_from_slice(b"\r\n");
        self
    }

    pub(crate) fn field(self, name: &str, value: &str) -> Self {
        self.part(
            &format!("Content-Disposition: form-data; name=\"{name}\""),
            value.as_bytes(),
        )
    }

    pub(crate) fn file(self, name: &str, bytes: &[u8]) -> Self {
        self.file_of("text/csv", name, bytes)
    }

    fn file_of(self, content_type: &str, name: &str, bytes: &[u8]) -> Self {
        let head = format!(
            "Content-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
             Content-Type: {content_type}"
        );
        self.part(&head, bytes)
    }

    fn bytes(mut self) -> Vec<u8> {
        self.0
            .extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
        self.0
    }

    pub(crate) async fn post(self, client: &Client) -> Reply {
        self.post_to(client, PATH).await
    }

    /// Posts the form to another path.
    pub(crate) async fn post_to(self, client: &Client, path: &str) -> Reply {
        send(self.request(client, path)).await
    }

    /// The request that posts the form to a path.
    pub(crate) fn request(self, client: &Client, path: &str) -> reqwest::RequestBuilder {
        let request = client.request(Method::POST, path);
        let form = format!("multipart/form-data; boundary={BOUNDARY}");
        request.header(CONTENT_TYPE, form).body(self.bytes())
    }
}

/// Posts a body as a multipart form, be it one or not.
async fn post(client: &Client, body: impl Into<reqwest::Body>) -> Reply {
    let form = format!("multipart/form-data; boundary={BOUNDARY}");
    send(
        client
            .request(Method::POST, PATH)
            .header(CONTENT_TYPE, form)
            .body(body),
    )
    .await
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers
        .get(name)
        .unwrap_or_else(|| panic!("no {name}"))
        .to_str()
        .unwrap()
}
