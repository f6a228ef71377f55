//! Costs of hostile requests: the memory of the server's process, and what they leave behind.
//!
//! A separate server process is measured: its peak, which is reset before each request.

use std::{collections::BTreeMap, fs, path::Path, sync::Arc};

use futures::future::join_all;
use labdata_operations::{About, Access, Method as OperationMethod};
use labdata_test_database::TestDatabase;
use parquet::{
    basic::Compression,
    data_type::{ByteArray, ByteArrayType},
    file::{
        properties::{EnabledStatistics, WriterProperties},
        writer::SerializedFileWriter,
    },
    schema::parser::parse_message_type,
};
use reqwest::{
    Client, Method, RequestBuilder, StatusCode,
    multipart::{Form, Part},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{io::AsyncWriteExt, net::TcpStream};
use tokio_postgres::NoTls;

use crate::{
    models::workbooks::{SHARED, Workbook, header, row},
    process::{Program, directory},
};

const KEY: &str = "ldk_hostile7_0123456789abcdefghijklmnopqrstuvwxyz";

/// Memory by which one request may grow the process, in bytes.
const OF_REQUEST: u64 = 150 << 20;

/// Memory by which an organization at all its limits may grow the process, in bytes.
const OF_ORGANIZATION: u64 = 400 << 20;

/// Nearly the largest body of a request with JSON.
const BODY: usize = 4_700_000;

/// Tables that the platform writes to without a request.
const HOUSEKEEPING: [&str; 4] = [
    "labdata.__diesel_schema_migrations",
    // Of uploads before, which triggers take from it in the background.
    "labdata.event",
    "labdata.periodic_task",
    "labdata.training_backend",
];

struct Lab {
    program: Program,
    behind: tokio_postgres::Client,
    http: Client,
    directory: TempDir,
    // Dropped after the program.
    _own: TestDatabase,
}

impl Lab {
    async fn start() -> Self {
        let (directory, own) = (directory(), TestDatabase::new().await);
        let settings = [("DATABASE_URL", own.url()), ("LABDATA_BOOTSTRAP_KEY", KEY)];
        let program = Program::serve(directory.path(), &settings);
        let (behind, connection) = tokio_postgres::connect(own.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        let lab = Self {
            program,
            behind,
            http: Client::new(),
            directory,
            _own: own,
        };
        // What is loaded once, such as the key and the definitions, is no growth of a request.
        lab.write(json!({ "tables": [{ "table": "experiment", "rows": [{ "name": "first" }] }] }))
            .await;
        lab
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let url = format!("{}{path}", self.program.url);
        self.http.request(method, url).bearer_auth(KEY)
    }

    async fn write(&self, body: Value) -> (StatusCode, Value) {
        reply(self.request(Method::POST, "/api/v1/data/write").json(&body)).await
    }

    /// A figure of the process, in bytes.
    fn memory(&self, name: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.program.pid())).unwrap();
        let line = status.lines().find(|line| line.starts_with(name));
        let kilobytes = line.and_then(|line| line.split_whitespace().nth(1));
        kilobytes.unwrap().parse::<u64>().unwrap() * 1024
    }

    /// Does work, during which the process may grow by less than `limit`.
    async fn within<T>(&self, limit: u64, name: &str, work: impl Future<Output = T>) -> T {
        // Resets the peak.
        fs::write(format!("/proc/{}/clear_refs", self.program.pid()), "5").unwrap();
        let before = self.memory("VmHWM");
        let done = work.await;
        let grown = self.memory("VmHWM").saturating_sub(before);
        assert!(grown < limit, "{name}: {} MiB", grown >> 20);
        done
    }

    /// Number of rows of every table, and of bytes of objects.
    async fn stored(&self) -> BTreeMap<String, u64> {
        let tables = "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables \
                      WHERE schemaname = 'labdata' OR schemaname LIKE 'org\\_%'";
        let mut stored = BTreeMap::new();
        for table in self.behind.query(tables, &[]).await.unwrap() {
            let table: String = table.get(0);
            if HOUSEKEEPING.contains(&table.as_str()) {
                continue;
            }
            let count = format!("SELECT count(*) FROM {table}");
            let count: i64 = self.behind.query_one(&count, &[]).await.unwrap().get(0);
            stored.insert(table, count.try_into().unwrap());
        }
        let objects = self.directory.path().join(".labdata/objects");
        stored.insert("objects".to_owned(), size_of(&objects));
        stored
    }

    /// Uploads a file; returns its id.
    async fn upload(&self, name: &str, bytes: Vec<u8>) -> String {
        let instrument = json!({ "name": name });
        let instruments = self.request(Method::POST, "/api/v1/instruments");
        let (_, instrument) = reply(instruments.json(&instrument)).await;
        let instrument = instrument["id"].as_str().unwrap().to_owned();
        let form = Form::new()
            .text("instrument_id", instrument)
            .part("file", Part::bytes(bytes).file_name(name.to_owned()));
        let files = self.request(Method::POST, "/api/v1/files").multipart(form);
        let (status, file) = reply(files).await;
        assert_eq!(status, StatusCode::OK, "{file}");
        file["file_id"].as_str().unwrap().to_owned()
    }

    /// A request that sends a file within a form.
    fn send_file(
        &self,
        path: &str,
        name: &str,
        bytes: &[u8],
        fields: &[(&'static str, &str)],
    ) -> RequestBuilder {
        let part = Part::bytes(bytes.to_vec()).file_name(name.to_owned());
        let form = fields.iter().fold(Form::new(), |form, (name, value)| {
            form.text(*name, (*value).to_owned())
        });
        self.request(Method::POST, path)
            .multipart(form.part("file", part))
    }

    fn tool(&self, method: &str, params: &Value) -> RequestBuilder {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.request(Method::POST, "/mcp")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2025-06-18")
            .json(&message)
    }

    /// Sends a request that many times, and reads no response.
    async fn leave_unread(&self, times: usize, path: &str, key: &str, body: &str) {
        let address = self.program.url.trim_start_matches("http://").to_owned();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: lab\r\nAuthorization: Bearer {key}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let sent = (0..times).map(async |_| {
            let mut client = TcpStream::connect(&address).await.unwrap();
            // A refused client may find its connection closed.
            let _ = client.write_all(request.as_bytes()).await;
            // A response of a refusal is there by then, and that of a slot's holder as far as it gets.
            let _ = client.readable().await;
            client
        });
        drop(join_all(sent).await);
    }
}

async fn reply(request: RequestBuilder) -> (StatusCode, Value) {
    let response = request.send().await.unwrap();
    let status = response.status();
    let text = response.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or(text.into()))
}

/// Bytes of all files below a directory.
fn size_of(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else {
        return 0;
    };
    let entries = entries.map(|entry| entry.unwrap().path());
    entries
        .map(|path| {
            if path.is_dir() {
                size_of(&path)
            } else {
                path.metadata().map_or(0, |file| file.len())
            }
        })
        .sum()
}

/// A JSON list of zeros of about that many bytes.
fn zeros(bytes: usize) -> String {
    format!("[0{}]", ",0".repeat(bytes / 2))
}

/// Operations whose fields are all optional, so that they accept an object of others. They refuse the other
/// bodies.
const TAKE_ANY_OBJECT: [&str; 2] = ["start_job_execution", "change_notification_preferences"];

/// Bodies of JSON that no operation accepts: deep ones, and ones that consist of problems.
fn hostile_bodies() -> [(&'static str, String); 3] {
    let fields = ["tables", "columns", "rows", "name", "parameters", "series"];
    let field = zeros(BODY / fields.len() - 20);
    let fields = fields.map(|name| format!("\"{name}\":{field}")).join(",");
    [
        ("deep", format!("{{\"name\":{}", "[".repeat(BODY))),
        ("a list", zeros(BODY)),
        ("lists", format!("{{{fields}}}")),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn no_operation_is_grown_or_moved_to_store_by_a_hostile_body() {
    let lab = Lab::start().await;
    let before = lab.stored().await;
    for operation in labdata_operations::all() {
        let About { method, path, .. } = operation.about;
        let is_read = matches!(method, OperationMethod::Get | OperationMethod::Delete);
        if is_read || operation.access == Access::Open {
            continue;
        }
        let takes_any = TAKE_ANY_OBJECT.contains(&operation.about.name);
        let method = Method::from_bytes(method.as_str().as_bytes()).unwrap();
        let named = path.replace("{name}", "hostile").replace("{column}", "x");
        let mut parts = named.split(['{', '}']).enumerate();
        let called: String = parts
            .by_ref()
            .map(|(place, part)| match place % 2 {
                1 => "0191d5a4-0000-7000-8000-000000000000",
                _ => part,
            })
            .collect();
        for (name, body) in hostile_bodies() {
            let request = lab.request(method.clone(), &called);
            let request = request
                .header("content-type", "application/json")
                .body(body);
            if takes_any && name == "lists" {
                continue;
            }
            let name = format!("{method} {path}: {name}");
            let (status, text) = lab.within(OF_REQUEST, &name, reply(request)).await;
            let is_refused = status.is_client_error() || path == "/mcp";
            assert!(is_refused, "{name}: {status} {text}");
        }
    }
    assert_eq!(lab.stored().await, before);
}

/// An experiment with metadata of that many bytes.
fn experiment(bytes: usize) -> Value {
    let metadata = json!({ "text": "x".repeat(bytes) });
    json!({ "tables": [{ "table": "experiment",
        "rows": [{ "name": "long", "metadata": metadata }] }] })
}

#[tokio::test(flavor = "multi_thread")]
async fn no_tool_is_grown_or_moved_to_store_by_hostile_arguments() {
    let lab = Lab::start().await;
    let before = lab.stored().await;
    let (_, listed) = reply(lab.tool("tools/list", &json!({}))).await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    assert!(tools.len() > 10, "{listed}");
    for tool in tools {
        let fields = tool["inputSchema"]["properties"].as_object().unwrap();
        if fields.is_empty() {
            continue;
        }
        let zeros = vec![0; BODY / 2 / fields.len() - 100];
        let arguments: Value = fields
            .keys()
            .map(|name| (name.clone(), zeros.clone().into()))
            .collect::<serde_json::Map<_, _>>()
            .into();
        let name = tool["name"].as_str().unwrap();
        let call = json!({ "name": name, "arguments": arguments });
        let call = lab.tool("tools/call", &call);
        let (status, result) = lab.within(OF_REQUEST, name, reply(call)).await;
        let is_refused = result["result"]["isError"] == true || result["error"].is_object();
        assert!(
            is_refused || status == StatusCode::PAYLOAD_TOO_LARGE,
            "{name}: {result}"
        );
    }
    assert_eq!(lab.stored().await, before);
}

/// True for a preview, by a route or a tool, with a doubt about quotation marks.
fn is_doubted(response: &Value) -> bool {
    let of_tool = response["result"]["content"][0]["text"].as_str();
    let of_tool = of_tool.and_then(|text| serde_json::from_str::<Value>(text).ok());
    let preview = of_tool.as_ref().unwrap_or(response);
    let mut doubts = preview["doubts"].as_array().into_iter().flatten();
    doubts.any(|doubt| doubt["code"] == "quotation_mark")
}

/// A Parquet file of some kilobytes whose one column has a text of 1 MiB in each of many rows.
fn parquet_bomb(rows: usize) -> Vec<u8> {
    let schema = parse_message_type("message rows { required binary name (UTF8); }").unwrap();
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_dictionary_page_size_limit(64 << 20)
        .set_statistics_enabled(EnabledStatistics::None)
        .build();
    let mut writer =
        SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let text = ByteArray::from(vec![b'x'; 1 << 20]);
    let typed = column.typed::<ByteArrayType>();
    typed.write_batch(&vec![text; rows], None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.into_inner().unwrap()
}

/// Workbooks of some megabytes at most: one whose cells all show one long text, and one that unpacks to much.
fn workbook_bombs() -> [(&'static str, Vec<u8>); 2] {
    let cell = |number: u32| format!("<c r=\"A{number}\" t=\"s\"><v>0</v></c>");
    let rows: String = (2..20_000)
        .map(|number| row(number, &[cell(number)]))
        .collect();
    let text = "x".repeat(32_000);
    let shared = format!("<sst><si><t>{text}</t></si></sst>");
    let one = Workbook::of_rows(&(header(&["name"]) + &rows)).with(SHARED, &shared);
    let much = Workbook::of_rows(&(header(&["name"]) + &rows));
    [
        ("repeated.xlsx", one.bytes()),
        (
            "spaces.xlsx",
            much.with_spaces(SHARED, 1 << 29, 1 << 29).bytes(),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_unpack_to_gigabytes_do_not_fill_the_memory() {
    let lab = Lab::start().await;
    let bombs = workbook_bombs().into_iter().chain([
        ("bomb.parquet", parquet_bomb(1_200)),
        (
            "quotation.csv",
            [b"name\n\"", &*vec![b'x'; 4 << 20]].concat(),
        ),
    ]);
    for (name, bytes) in bombs {
        assert!(bytes.len() < 8 << 20, "{name}: {}", bytes.len());
        let id = lab.upload(name, bytes.clone()).await;
        let before = lab.stored().await;
        let arguments = json!({ "file_id": id, "rows": 200 });
        let call = json!({ "name": "parse_table", "arguments": arguments });
        let preview = json!({ "file_id": id });
        let dataset = json!({ "name": "wine", "file_id": id });
        let fields = [("mode", "insert"), ("dry_run", "true")];
        let path = "/api/v1/tables/experiment/import";
        for (door, request) in [
            (
                "preview",
                lab.request(Method::POST, "/api/v1/tools/preview-table")
                    .json(&preview),
            ),
            (
                "preview of a form",
                lab.send_file("/api/v1/tools/preview-table", name, &bytes, &[]),
            ),
            ("parse_table", lab.tool("tools/call", &call)),
            (
                "dataset",
                lab.request(Method::POST, "/api/v1/datasets").json(&dataset),
            ),
            ("import", lab.send_file(path, name, &bytes, &fields)),
        ] {
            let door = format!("{door} of {name}");
            let (status, text) = lab.within(OF_REQUEST, &door, reply(request)).await;
            assert!(!status.is_server_error(), "{door}: {status} {text}");
            let is_refused = status == StatusCode::BAD_REQUEST || text["result"]["isError"] == true;
            // A preview says what an import would refuse.
            assert!(
                is_refused || is_doubted(&text) || status == StatusCode::NOT_FOUND,
                "{door}: {status} {text}"
            );
        }
        assert_eq!(lab.stored().await, before, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_is_named_a_thousand_times_is_not_returned_as_often() {
    let lab = Lab::start().await;
    let (_, written) = lab.write(experiment(1 << 20)).await;
    let id = &written["tables"][0]["ids"][0];
    let before = lab.stored().await;
    for dry_run in [true, false] {
        let update = json!({ "table": "experiment", "mode": "update",
            "rows": [{ "id": id, "name": "long" }] });
        let body = json!({ "tables": vec![update; 1000], "return_rows": true, "dry_run": dry_run });
        let (status, refused) = lab.within(OF_REQUEST, "return_rows", lab.write(body)).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{refused}");
    }
    assert_eq!(lab.stored().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_that_no_one_reads_stay_within_the_share_of_an_organization() {
    let lab = Lab::start().await;
    let mut ids = Vec::new();
    for _ in 0..14 {
        let (_, written) = lab.write(experiment(1 << 20)).await;
        ids.push(written["tables"][0]["ids"][0].clone());
    }
    let rows: Vec<Value> = ids
        .iter()
        .map(|id| json!({ "id": id, "name": "long" }))
        .collect();
    let returned = json!({ "return_rows": true, "dry_run": true, "tables": [
        { "table": "experiment", "mode": "update", "rows": rows }] });
    let read = json!({ "target_name": "experiment", "target_type": "core-table" });
    let query = json!({ "query": "SELECT repeat('x', 1000000) FROM generate_series(1, 15)" });
    for (path, body) in [
        ("/api/v1/data/write", returned),
        ("/api/v1/tools/read", read),
        ("/api/v1/tools/query", query),
    ] {
        let body = body.to_string();
        let unread = lab.leave_unread(32, path, KEY, &body);
        lab.within(OF_ORGANIZATION, path, unread).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_of_one_organization_stay_within_its_share() {
    let lab = Lab::start().await;
    for (name, body) in hostile_bodies() {
        let sent = lab.leave_unread(32, "/api/v1/data/write", KEY, &body);
        lab.within(OF_ORGANIZATION, name, sent).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_of_callers_without_a_key_are_not_held() {
    let lab = Lab::start().await;
    let body = zeros(BODY);
    let unknown = KEY.replace("hostile7", "unknown7");
    for path in [
        "/api/v1/data/write",
        "/api/v1/tools/query",
        "/mcp",
        "/api/v1/session",
    ] {
        let sent = lab.leave_unread(32, path, &unknown, &body);
        lab.within(OF_REQUEST, path, sent).await;
    }
}
