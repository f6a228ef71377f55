//! Every operation and every tool against callers with other rights, with ids that exist.
//!
//! What is expected follows from the declared scope and the tables of exceptions below.

mod operations;
mod requests;
mod tools;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use labdata_api::system::SystemIds;
use labdata_application::{Services, agent::Agent};
use labdata_domain::{
    agent::Chat,
    ids::{AnnotationId, ChatId, DatasetId, FileId},
    instruments::images::{Annotation, BoundingBox, Label, MaskShape, PixelSize},
    models::{ColumnProfile, Dataset, DatasetColumn, DatasetSource, TrainingBackend},
    people::scope::Scope,
    scalar::DataType,
    storage::StorageQuota,
};
use labdata_memory::{FixedClock, InMemoryChatRepository, Memory};
use labdata_ports::Clock;
use reqwest::Method;
use serde_json::{Value, json};

pub(in crate::people) use self::requests::{arguments, call_tool, example, naming, path_of};
use crate::server::{Client, TestServer, agent_without_model, send, sql_access};

/// An id that no record has.
pub(in crate::people) const UNKNOWN: &str = "0191d5a4-0000-7000-8000-000000000000";

/// Name of the table.
const TABLE: &str = "given_table";

/// Records of an organization, by the name of the path parameter or field that names them.
pub(in crate::people) type Records = BTreeMap<&'static str, String>;

struct Lab {
    server: TestServer,
    admin: Client,
    records: Records,
    unknown: Records,
}

async fn id_of(client: &Client, path: &str, body: Value, field: &str) -> String {
    let made = client.post(path, &body).await.json(200);
    made[field]
        .as_str()
        .unwrap_or_else(|| panic!("{made}"))
        .to_owned()
}

impl Lab {
    async fn start() -> Self {
        let server = with_chats().await;
        let admin = server.admin().await;
        let backend = TrainingBackend {
            worker: server.services.ids.next_id(),
            checked_at: server.services.clock.now(),
            missing: None,
        };
        let trainings = &server.services.trainings;
        trainings.record_backend(&backend).await.unwrap();
        let columns = json!([{ "name": "given_column", "data_type": "string" }]);
        let table = json!({ "semantic_category": "curated", "columns": columns });
        let put = admin.request(Method::PUT, &format!("/api/v1/tables/{TABLE}"));
        send(put.json(&table)).await.json(200);
        let mut records = Self::make_records(&admin).await;
        let test = format!("/api/v1/webhooks/{}/test", records["webhook_id"]);
        records.insert("delivery_id", id_of(&admin, &test, Value::Null, "id").await);
        let execution = records["execution_id"].clone();
        records.insert("job_execution_id", execution);
        let file = upload(&admin, &records["instrument_id"]).await;
        let annotation = annotation(&server, file.parse().unwrap()).await;
        records.insert("annotation_id", annotation.to_string());
        records.insert("file_id", file);
        records.insert("dataset_id", dataset(&server).await.to_string());
        let model = json!({
            "name": "given", "dataset_id": records["dataset_id"], "target_column": "cultivar",
            "feature_columns": ["alcohol"], "quality_preset": "medium_quality",
        });
        let model = id_of(&admin, "/api/v1/ml-models", model, "id").await;
        // A running training would have a stream of progress without an end.
        let cancel = format!("/api/v1/ml-models/{model}/cancel-training");
        admin.post(&cancel, &Value::Null).await.json(200);
        records.insert("ml_model_id", model);
        records.insert("chat_id", chat(&server).await.to_string());
        for (name, value) in [
            ("name", TABLE),
            ("table", TABLE),
            ("target_name", TABLE),
            ("column", "given_column"),
            ("version_number", "1"),
        ] {
            records.insert(name, value.to_owned());
        }
        let unknown = records.keys().map(|name| {
            let value = match *name {
                "name" | "table" | "column" | "target_name" => "unknown_name",
                "version_number" => "1",
                _ => UNKNOWN,
            };
            (*name, value.to_owned())
        });
        Self {
            unknown: unknown.collect(),
            server,
            admin,
            records,
        }
    }

    /// Makes the records that one request each makes.
    async fn make_records(admin: &Client) -> Records {
        let mut records = Records::new();
        let named = json!({ "name": "given" });
        let job = json!({ "name": "given", "code": "print()" });
        let user = json!({ "email": "given@example.org" });
        let key = json!({ "name": "given", "scopes": ["read"] });
        let notification = json!({ "title": "given", "dedupe_key": "given" });
        let webhook = json!({ "url": "https://lab.example.org/", "events": ["model.ready"] });
        for (name, path, body, field) in [
            ("instrument_id", "/api/v1/instruments", named, "id"),
            ("job_id", "/api/v1/jobs", job, "id"),
            (
                "execution_id",
                "/api/v1/job-executions",
                json!({}),
                "job_execution_id",
            ),
            ("user_id", "/api/v1/users", user, "id"),
            ("api_key_id", "/api/v1/api-keys", key, "id"),
            (
                "group_id",
                "/api/v1/groups",
                json!({ "name": "given group" }),
                "id",
            ),
            (
                "invitation_id",
                "/api/v1/invitations",
                json!({ "email": "invited@example.org" }),
                "id",
            ),
            (
                "saved_view_id",
                "/api/v1/saved-views",
                json!({ "name": "given view", "address": "#/sql" }),
                "id",
            ),
            ("id", "/api/v1/notifications", notification, "id"),
            ("webhook_id", "/api/v1/webhooks", webhook, "id"),
            (
                "login_id",
                "/api/v1/sql-logins",
                json!({ "name": "given" }),
                "id",
            ),
        ] {
            records.insert(name, id_of(admin, path, body, field).await);
        }
        records
    }

    /// A key of a run of the organization, with the scopes that it has at most.
    async fn run(&self) -> Client {
        let opened = self.admin.post("/api/v1/job-executions", &json!({})).await;
        let opened = opened.json(200);
        let id = opened["job_execution_id"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap();
        let scopes = [Scope::Read, Scope::Write];
        let key = self.server.key(&scopes, |key| key.execution = Some(id));
        self.server.with_key(&key.await)
    }
}

/// A server whose agent has its chats in the store of the server.
async fn with_chats() -> TestServer {
    let (memory, clock) = (Memory::new(), Arc::new(FixedClock::default()));
    let displayed: Arc<dyn Clock> = clock.clone();
    let mut services = Services::unlimited(labdata_memory::ports(&memory, displayed));
    services.ids = Arc::new(SystemIds);
    services.sql = sql_access();
    let agent = Agent {
        chats: Arc::new(InMemoryChatRepository::new(&memory)),
        ..agent_without_model(&services)
    };
    TestServer::start_with(services, agent, clock).await
}

async fn upload(client: &Client, instrument: &str) -> String {
    let body = format!(
        "--b\r\nContent-Disposition: form-data; name=\"instrument_id\"\r\n\r\n{instrument}\r\n\
         --b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"given.csv\"\r\n\r\na\r\n1\r\n\
         --b--\r\n"
    );
    let request = client.request(Method::POST, "/api/v1/files");
    let request = request.header("Content-Type", "multipart/form-data; boundary=b");
    let made = send(request.body(body)).await.json(200);
    made["file_id"].as_str().unwrap().to_owned()
}

async fn annotation(server: &TestServer, file: FileId) -> AnnotationId {
    let size = PixelSize {
        width: 1,
        height: 1,
    };
    let annotation = Annotation {
        id: server.services.ids.next_id().into(),
        file,
        execution: None,
        label: Label::parse("cell").unwrap(),
        object: labdata_domain::files::ObjectKey::new(server.services.ids.next_id()),
        size_bytes: 70,
        shape: MaskShape {
            size,
            foreground: 1,
            bounds: BoundingBox {
                x: 0,
                y: 0,
                width: 1,
                height: 1,
            },
        },
        is_human_vetted: false,
        created_by: server.user,
        created_at: server.services.clock.now(),
    };
    let annotations = &server.services.annotations;
    let (organization, now) = (server.organization, server.services.clock.now());
    let unlimited = StorageQuota::UNLIMITED;
    let one = [annotation];
    let added = annotations.add(organization, file, None, &one, unlimited, now);
    added.await.unwrap();
    let [annotation] = one;
    annotation.id
}

async fn dataset(server: &TestServer) -> DatasetId {
    let column = |name: &str, data_type, distinct| DatasetColumn {
        name: name.to_owned(),
        data_type,
        profile: ColumnProfile { nulls: 0, distinct },
    };
    let dataset = Dataset {
        id: server.services.ids.next_id().into(),
        name: "wines".to_owned(),
        description: None,
        columns: vec![
            column("alcohol", DataType::Float, None),
            column("cultivar", DataType::Integer, Some(3)),
        ],
        row_count: 178,
        source: DatasetSource::Query("SELECT * FROM wine".to_owned()),
        tables: BTreeSet::new(),
        object: labdata_domain::files::ObjectKey::new(server.services.ids.next_id()),
        size: 9_000,
        created_by: server.user,
        created_at: server.services.clock.now(),
    };
    let datasets = &server.services.datasets;
    let added = datasets.add(server.organization, &dataset, StorageQuota::UNLIMITED);
    added.await.unwrap();
    dataset.id
}

async fn chat(server: &TestServer) -> ChatId {
    let id = ChatId::new(server.services.ids.next_id());
    let chat = Chat::new(id, "given", server.services.clock.now());
    let chats = &server.agent.chats;
    let saved = chats.save(server.organization, server.user, &chat, &[]);
    saved.await.unwrap();
    id
}

/// A text without the records in it, which may be those of the request.
fn without_ids(text: &str, records: &Records) -> String {
    let records = records.values().filter(|record| record.len() > 1);
    records.fold(text.to_owned(), |text, record| {
        text.replace(record.as_str(), "…")
    })
}
