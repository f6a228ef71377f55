//! A server with PostgreSQL and a private directory for its objects.

use std::{path::Path, sync::Arc};

use arrow_array::RecordBatch;
use labdata_domain::storage::StorageQuota;
use labdata_object_store::{GatewaySigner, LocalBlobStore};
use labdata_postgres::DatabaseSettings;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use reqwest::{Method, multipart};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    on_postgres::OnPostgres,
    server::{Client, Reply, send},
};

pub(super) const PATH: &str = "/api/v1/datasets";

/// Prefix of signed URLs before the server's port is known.
const SIGNED: &str = "http://files.invalid";

pub(super) struct DatasetLab {
    pub(super) on: OnPostgres,
    pub(super) client: Client,
    directory: TempDir,
}

impl DatasetLab {
    pub(super) async fn start() -> Self {
        Self::with_quota(StorageQuota::UNLIMITED).await
    }

    /// With that quota of files and datasets per organization.
    pub(super) async fn with_quota(storage_quota: StorageQuota) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let blobs = Arc::new(LocalBlobStore::open(directory.path()).await.unwrap());
        let signer = Arc::new(GatewaySigner::new(SIGNED, &[9; 32]));
        let on = OnPostgres::with_ports(DatabaseSettings::default(), |mut services| {
            services.blobs = blobs;
            services.signer = signer;
            services.storage_quota = storage_quota;
            services
        });
        let on = on.await;
        Self {
            client: on.client.clone(),
            on,
            directory,
        }
    }

    /// Uploads a file and returns its id.
    pub(super) async fn upload(&self, name: &str, bytes: impl Into<Vec<u8>>) -> String {
        let body = json!({ "job_name": "upload" });
        let execution = self.client.post("/api/v1/job-executions", &body).await;
        let execution = execution.json(200)["job_execution_id"].clone();
        let part = multipart::Part::bytes(bytes.into()).file_name(name.to_owned());
        let form = multipart::Form::new()
            .text("job_execution_id", execution.as_str().unwrap().to_owned())
            .part("file", part);
        let request = self.client.request(Method::POST, "/api/v1/files");
        let file = send(request.multipart(form)).await.json(200);
        file["file_id"].as_str().unwrap().to_owned()
    }

    pub(super) async fn of_query(&self, query: &str) -> Reply {
        let body = json!({ "name": "wine", "query": query });
        self.client.post(PATH, &body).await
    }

    pub(super) async fn of_file(&self, id: &str) -> Reply {
        let body = json!({ "name": "wine", "file_id": id });
        self.client.post(PATH, &body).await
    }

    /// The detail of the refusal of a file of that name.
    pub(super) async fn refusal(&self, name: &str, bytes: impl Into<Vec<u8>>) -> String {
        let id = self.upload(name, bytes).await;
        self.of_file(&id).await.detail(400)
    }

    /// Downloads the rows of a dataset.
    pub(super) async fn rows(&self, dataset: &Value) -> Vec<RecordBatch> {
        let bytes = self.bytes(dataset).await;
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes)).unwrap();
        reader.build().unwrap().map(Result::unwrap).collect()
    }

    /// Downloads the Parquet file of a dataset.
    pub(super) async fn bytes(&self, dataset: &Value) -> Vec<u8> {
        let path = format!("{PATH}/{}/download", dataset["id"].as_str().unwrap());
        let download = self.client.get(&path).await.json(200);
        let signed = download["download_url"].as_str().unwrap();
        let path = signed.strip_prefix(SIGNED).unwrap();
        let anonymous = self.on.server.anonymous().request(Method::GET, path);
        let response = anonymous.send().await.unwrap();
        assert_eq!(response.status(), 200);
        let bytes = response.bytes().await.unwrap();
        assert_eq!(download["size_bytes"], bytes.len());
        bytes.into()
    }

    /// Counts the objects in the storage, finished or not.
    pub(super) fn stored(&self) -> usize {
        count(self.directory.path())
    }
}

fn count(directory: &Path) -> usize {
    let entries = std::fs::read_dir(directory).unwrap();
    let counts = entries.map(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() { count(&path) } else { 1 }
    });
    counts.sum()
}

/// Names and types of a dataset's columns.
pub(super) fn columns(dataset: &Value) -> Vec<(&str, &str)> {
    let columns = dataset["columns"].as_array().unwrap().iter();
    columns
        .map(|column| {
            let name = column["name"].as_str().unwrap();
            (name, column["data_type"].as_str().unwrap())
        })
        .collect()
}
