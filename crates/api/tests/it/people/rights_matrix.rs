//! Every operation and every tool against callers with other rights, with ids that exist.
//!
//! What is expected follows from the declared scope and the tables of exceptions below.

use std::{collections::BTreeMap, sync::Arc};

use labdata_api::{routes::openapi, system::SystemIds};
use labdata_application::{Services, agent::Agent};
use labdata_domain::{
    agent::Chat,
    ids::{AnnotationId, ChatId, DatasetId, FileId},
    instruments::images::{Annotation, BoundingBox, Label, MaskShape, PixelSize},
    models::{ColumnProfile, Dataset, DatasetColumn, DatasetSource, TrainingBackend},
    people::{role::Role, scope::Scope, tenancy::User},
    scalar::DataType,
    storage::StorageQuota,
};
use labdata_memory::{FixedClock, InMemoryChatRepository, Memory};
use labdata_operations::{About, Access, Operation};
use labdata_ports::Clock;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    mcp::lab::ask,
    server::{Client, Reply, TestServer, agent_without_model, send},
};

/// An id that no record has.
pub(super) const UNKNOWN: &str = "0191d5a4-0000-7000-8000-000000000000";

/// Name of the table.
const TABLE: &str = "given_table";

/// Operations that the key of a run does not have, although it has their scope: those that change what others
/// run or stored, and personal records. Adding one is a decision, and so is leaving one out.
const NOT_FOR_RUNS: &[&str] = &[
    "cancel_job_execution",
    "change_notification_preferences",
    "close_job_execution",
    "count_unread_notifications",
    "create_job",
    "create_sql_login",
    "delete_agent_chat",
    "delete_file",
    "get_agent_chat",
    "get_agent_chat_file",
    "get_notification_preferences",
    "get_sql_login",
    "list_agent_chats",
    "list_notifications",
    "list_sql_logins",
    "mark_notification",
    "record_heartbeat",
    "restore_from_trash",
    "revert_job_execution",
    "revoke_sql_login",
    "run_agent",
    "start_job_execution",
    "update_job",
];

/// Operations on personal records: to another user of the organization, they do not exist.
const PERSONAL: &[&str] = &[
    "delete_agent_chat",
    "get_agent_chat",
    "get_agent_chat_file",
    "mark_notification",
];

/// Operations that need the scope to read besides their own: one grants it by its example, the other reads what
/// it writes.
const NEED_READ: &[&str] = &["create_api_key", "restore_row"];

/// Records of an organization, by the name of the path parameter or field that names them.
pub(super) type Records = BTreeMap<&'static str, String>;

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
        let mut records = Records::new();
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
            ("id", "/api/v1/notifications", notification, "id"),
            ("webhook_id", "/api/v1/webhooks", webhook, "id"),
            (
                "login_id",
                "/api/v1/sql-logins",
                json!({ "name": "given" }),
                "id",
            ),
        ] {
            records.insert(name, id_of(&admin, path, body, field).await);
        }
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

    /// Another user of the organization, with every scope.
    async fn colleague(&self) -> Client {
        let bob = User {
            id: self.server.services.ids.next_id().into(),
            organization: self.server.organization,
            email: "bob@example.org".to_owned(),
            name: "Bob".to_owned(),
            role: Role::Admin,
            groups: Vec::new(),
            created_at: self.server.services.clock.now(),
            disabled_at: None,
        };
        let bob = self
            .server
            .services
            .tenancy
            .ensure_user(&bob)
            .await
            .unwrap();
        let key = self.server.key(&Scope::ALL, |key| key.user = bob.id);
        self.server.with_key(&key.await)
    }
}

/// A server whose agent has its chats in the store of the server.
async fn with_chats() -> TestServer {
    let (memory, clock) = (Memory::new(), Arc::new(FixedClock::default()));
    let displayed: Arc<dyn Clock> = clock.clone();
    let mut services = Services::unlimited(labdata_memory::ports(&memory, displayed));
    services.ids = Arc::new(SystemIds);
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

/// The operation's path, with these records in it.
pub(super) fn path_of(operation: &Operation, records: &Records) -> String {
    let parts = operation.about.path.split('/').map(|part| {
        let name = part
            .strip_prefix('{')
            .and_then(|part| part.strip_suffix('}'));
        name.map_or(part, |name| {
            records.get(name).map_or(UNKNOWN, String::as_str)
        })
    });
    parts.collect::<Vec<_>>().join("/")
}

/// Puts these records where a body names others.
pub(super) fn naming(value: &Value, records: &Records) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| {
                // A job's or a table's own name is no reference.
                let record = records
                    .get(name.as_str())
                    .filter(|_| name != "name" && name != "id");
                let value = match (record, value) {
                    (Some(record), Value::String(_)) => record.as_str().into(),
                    _ => naming(value, records),
                };
                (name.clone(), value)
            });
            Value::Object(fields.collect())
        }
        Value::Array(values) => values.iter().map(|value| naming(value, records)).collect(),
        other => other.clone(),
    }
}

/// The example of the operation's JSON body.
pub(super) fn example(document: &Value, name: &str) -> Option<Value> {
    let paths = document["paths"].as_object()?.values();
    let mut operations = paths
        .filter_map(Value::as_object)
        .flat_map(|path| path.values());
    let operation = operations.find(|it| it["operationId"] == name)?;
    let content = &operation["requestBody"]["content"]["application/json"];
    (!content.is_null()).then(|| content["example"].clone())
}

/// A call of an operation with these records.
struct Call<'c> {
    operation: &'c Operation,
    example: Option<&'c Value>,
    records: &'c Records,
}

impl Call<'_> {
    async fn by(&self, client: &Client, cookie: Option<&str>) -> Reply {
        let About { method, .. } = self.operation.about;
        let method = Method::from_bytes(method.as_str().as_bytes()).unwrap();
        let mut request = client.request(method, &path_of(self.operation, self.records));
        if let Some(example) = self.example {
            request = request.json(&naming(example, self.records));
        }
        if let Some(cookie) = cookie {
            let request_of_page = request.header("cookie", cookie);
            request = request_of_page.header("sec-fetch-site", "same-origin");
        }
        send(request).await
    }
}

/// A text without the records in it, which may be those of the request.
fn without_ids(text: &str, records: &Records) -> String {
    let records = records.values().filter(|record| record.len() > 1);
    records.fold(text.to_owned(), |text, record| {
        text.replace(record.as_str(), "…")
    })
}

/// An operation under test, and what was found to be wrong with it.
struct Case {
    operation: Operation,
    scope: Scope,
    example: Option<Value>,
    problems: Vec<String>,
}

impl Case {
    fn name(&self) -> &'static str {
        self.operation.about.name
    }

    /// Calls the operation with these records.
    async fn call(&self, records: &Records, client: &Client, cookie: Option<&str>) -> Reply {
        let call = Call {
            operation: &self.operation,
            example: self.example.as_ref(),
            records,
        };
        call.by(client, cookie).await
    }

    fn expect(&mut self, holds: bool, caller: &str, reply: &Reply) {
        if !holds {
            let (name, status) = (self.name(), reply.status.as_u16());
            let text: String = reply.text.chars().take(200).collect();
            self.problems
                .push(format!("{name} by {caller}: {status} {text}"));
        }
    }

    fn expect_allowed(&mut self, caller: &str, reply: &Reply) {
        let is_allowed = ![401, 403, 405, 500].contains(&reply.status.as_u16());
        self.expect(is_allowed, caller, reply);
    }

    /// To another organization, what exists looks like what does not.
    async fn try_strangers(&mut self, lab: &Lab) {
        let named = |records| {
            let body = self
                .example
                .as_ref()
                .map(|example| naming(example, records));
            (path_of(&self.operation, records), body)
        };
        if named(&lab.records) == named(&lab.unknown) {
            return;
        }
        let stranger = lab.server.stranger().await;
        let found = self.call(&lab.records, &stranger, None).await;
        let missing = self.call(&lab.unknown, &stranger, None).await;
        let alike = found.status == missing.status
            && without_ids(&found.text, &lab.records) == without_ids(&missing.text, &lab.unknown);
        self.expect(alike, "a stranger", &found);
    }

    async fn try_scopes(&mut self, lab: &Lab) {
        let lacking = format!("this API key lacks the {} scope", self.scope);
        for held in [Scope::Read, Scope::Write, Scope::Admin] {
            let client = lab.server.client(&[held]).await;
            let reply = self.call(&lab.records, &client, None).await;
            if held == self.scope && NEED_READ.contains(&self.name()) {
                let lacking = "this API key lacks the read scope";
                let is_refused = reply.status == 403 && reply.text.contains(lacking);
                self.expect(is_refused, held.as_str(), &reply);
            } else if held == self.scope {
                self.expect_allowed(held.as_str(), &reply);
            } else {
                let is_refused = reply.status == 403 && reply.text.contains(&lacking);
                self.expect(is_refused, held.as_str(), &reply);
            }
        }
    }

    async fn try_run(&mut self, lab: &Lab) {
        let reply = self.call(&lab.records, &lab.run().await, None).await;
        let code = if self.scope == Scope::Admin {
            "scope_missing"
        } else if NOT_FOR_RUNS.contains(&self.name()) {
            "not_for_runs"
        } else {
            return self.expect_allowed("a run", &reply);
        };
        let is_refused = reply.status == 403 && reply.text.contains(code);
        self.expect(is_refused, "a run", &reply);
    }

    async fn try_people(&mut self, lab: &Lab) {
        let reply = self.call(&lab.records, &lab.colleague().await, None).await;
        if PERSONAL.contains(&self.name()) {
            self.expect(reply.status == 404, "a colleague", &reply);
        } else {
            self.expect_allowed("a colleague", &reply);
        }
        let key = lab.server.key(&Scope::ALL, |_| {}).await;
        let browser = lab.server.anonymous();
        let signed_in = json!({ "api_key": key });
        let signed_in = browser.post("/api/v1/session", &signed_in).await;
        let cookie = signed_in.header("set-cookie").unwrap().to_owned();
        let cookie = cookie.split(';').next();
        let reply = self.call(&lab.records, &browser, cookie).await;
        self.expect_allowed("a session", &reply);
    }
}

#[tokio::test]
async fn each_operation_gives_each_caller_what_its_scope_and_the_exceptions_say() {
    let document = openapi();
    let mut problems = Vec::new();
    for operation in labdata_operations::all() {
        let Access::Scope(scope) = operation.access else {
            continue;
        };
        let mut case = Case {
            example: example(&document, operation.about.name),
            scope,
            operation,
            problems: Vec::new(),
        };
        // Those who get nothing come first, so that all find the records.
        let lab = Lab::start().await;
        case.try_strangers(&lab).await;
        case.try_scopes(&lab).await;
        case.try_run(&Lab::start().await).await;
        case.try_people(&Lab::start().await).await;
        problems.append(&mut case.problems);
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn the_exceptions_name_operations_that_exist() {
    let operations = labdata_operations::all();
    for name in NOT_FOR_RUNS.iter().chain(PERSONAL).chain(NEED_READ) {
        assert!(operations.iter().any(|it| it.about.name == *name), "{name}");
    }
}

/// Arguments of a tool: the example of its operation, and the records that its schema names.
pub(super) fn arguments(document: &Value, tool: &Value, records: &Records) -> Value {
    let name = tool["name"].as_str().unwrap();
    let properties = tool["inputSchema"]["properties"].as_object().unwrap();
    let mut arguments = match example(document, name) {
        Some(Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    };
    arguments.retain(|name, _| properties.contains_key(name));
    let named = |property: &&String| property.as_str() != "name" && property.as_str() != "id";
    for property in properties.keys().filter(named) {
        if let Some(record) = records.get(property.as_str()) {
            let value = match property.as_str() {
                "version_number" => json!(1),
                _ => record.as_str().into(),
            };
            arguments.insert(property.clone(), value);
        }
    }
    naming(&arguments.into(), records)
}

/// The text of a tool's result, and true if the call failed.
pub(super) async fn call_tool(client: &Client, tool: &Value, arguments: Value) -> (String, bool) {
    let params = json!({ "name": tool["name"], "arguments": arguments });
    let response = ask(client, "tools/call", params).await.json(200);
    let result = &response["result"];
    let text = result["content"][0]["text"].as_str();
    (
        text.unwrap_or_default().to_owned(),
        result["isError"] == true,
    )
}

/// Tools that the key of a run does not have.
const TOOLS_NOT_FOR_RUNS: &[&str] = &["create_job", "update_job"];

#[tokio::test]
async fn each_tool_gives_each_caller_what_its_operation_would() {
    let document = openapi();
    let lab = Lab::start().await;
    let tools = ask(&lab.admin, "tools/list", json!({})).await.json(200)["result"]["tools"].take();
    let of_reader = lab.server.client(&[Scope::Read]).await;
    let offered = ask(&of_reader, "tools/list", json!({})).await.json(200);
    let offered = offered["result"]["tools"].as_array().unwrap();
    let stranger = lab.server.stranger().await;
    let run = lab.run().await;
    let mut problems = Vec::new();
    for tool in tools.as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        let (theirs, unknown) = (
            arguments(&document, tool, &lab.records),
            arguments(&document, tool, &lab.unknown),
        );
        if theirs != unknown {
            let (found, _) = call_tool(&stranger, tool, theirs.clone()).await;
            let (missing, _) = call_tool(&stranger, tool, unknown).await;
            if without_ids(&found, &lab.records) != without_ids(&missing, &lab.unknown) {
                problems.push(format!("{name} by a stranger: {found}, not {missing}"));
            }
        }
        if !offered.iter().any(|it| it["name"] == name) {
            let (refused, failed) = call_tool(&of_reader, tool, theirs.clone()).await;
            if !(failed && refused.contains("write")) {
                problems.push(format!("{name} by a reader: {refused}"));
            }
        }
        let (text, failed) = call_tool(&run, tool, theirs).await;
        if (failed && text.contains("its own run")) != TOOLS_NOT_FOR_RUNS.contains(&name) {
            problems.push(format!("{name} by a run: {text}"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    let writer = lab.server.client(&[Scope::Write]).await;
    let refused = ask(&writer, "tools/list", json!({})).await;
    assert_eq!(refused.detail(403), "this API key lacks the read scope");
}
