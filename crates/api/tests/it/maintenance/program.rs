//! The program from its first start to `kill -9`.

use std::{
    fs::Permissions,
    io::{BufRead, BufReader, ErrorKind},
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        process::ExitStatusExt,
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use reqwest::{
    Client, Method, StatusCode,
    multipart::{Form, Part},
};
use serde_json::{Value, json};

use crate::process::{Program, directory, labdata, run, text};

const CHOSEN: &str = "ldk_chosen77_0123456789abcdefghijklmnopqrstuvwxyz";

async fn call(
    program: &Program,
    key: &str,
    method: Method,
    path: &str,
    body: Value,
) -> (StatusCode, Value) {
    let url = format!("{}{path}", program.url);
    let request = Client::new().request(method, url).bearer_auth(key);
    let request = if body.is_null() {
        request
    } else {
        request.json(&body)
    };
    let response = request.send().await.unwrap();
    (response.status(), response.json().await.unwrap_or_default())
}

async fn instruments(program: &Program, key: &str) -> StatusCode {
    call(
        program,
        key,
        Method::GET,
        "/api/v1/instruments",
        Value::Null,
    )
    .await
    .0
}

/// The standard output of a command that succeeds.
#[track_caller]
fn succeeds(directory: &Path, arguments: &[&str]) -> String {
    let output = run(&mut labdata(directory, arguments));
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout).trim().to_owned()
}

#[tokio::test]
async fn the_first_start_prints_a_key_and_the_second_start_none() {
    let directory = directory();
    let program = Program::serve(directory.path(), &[]);
    let key = program.key.clone().expect("the first start prints a key");
    assert_eq!(instruments(&program, &key).await, StatusCode::OK);
    let (_, log) = call(&program, &key, Method::GET, "/api/v1/audit", Value::Null).await;
    let actions: Vec<&Value> = log
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["action"])
        .collect();
    assert_eq!(actions, ["api_key.created", "user.created"]);
    let url = program.url.clone();
    let (status, rest) = program.end("TERM");
    assert_eq!(status.code(), Some(0));
    let lines: Vec<&str> = rest.lines().collect();
    assert_eq!(lines[0], format!("Reference of the API: {url}/docs"));
    assert_eq!(lines.len(), 1, "a link that signs in was printed: {rest}");

    let program = Program::serve(directory.path(), &[]);
    assert_eq!(program.key, None);
    assert_eq!(instruments(&program, &key).await, StatusCode::OK);
    assert_eq!(program.end("INT").0.code(), Some(0));
}

#[tokio::test]
async fn a_file_is_imported_from_the_command_line() {
    let directory = directory();
    let program = Program::serve(directory.path(), &[("LABDATA_BOOTSTRAP_KEY", CHOSEN)]);
    let columns = json!([
        { "name": "name", "data_type": "string", "is_unique": true },
        { "name": "volume", "data_type": "float" },
    ]);
    let definition = json!({ "semantic_category": "curated", "columns": columns });
    let (status, _) = call(
        &program,
        CHOSEN,
        Method::PUT,
        "/api/v1/tables/sample",
        definition,
    )
    .await;
    assert_eq!(status, StatusCode::OK);
    let import = |csv: &str, more: &[&str], key: &str| {
        std::fs::write(directory.path().join("plate 1.csv"), csv).unwrap();
        let arguments = [&["import", "plate 1.csv", "sample"], more].concat();
        let mut command = labdata(directory.path(), &arguments);
        run(command.envs([
            ("LABDATA_BASE_URL", program.url.as_str()),
            ("LABDATA_API_KEY", key),
        ]))
    };
    let dry = import("name,volume\nA,1\n", &["--dry-run"], CHOSEN);
    assert_eq!(text(&dry.stdout).trim(), "dry run: 1 created, 0 updated");
    let created = import(
        "name;volume\nA;1.234\n",
        &["-o", "decimal=,", "-o", "thousands=."],
        CHOSEN,
    );
    assert!(text(&created.stdout).starts_with("1 created, 0 updated; job execution "));
    let updated = import(
        "name,volume\nA,2\nB,\n",
        &["--mode", "upsert", "--key", "name", "--json"],
        CHOSEN,
    );
    let response: Value = serde_json::from_slice(&updated.stdout).unwrap();
    assert_eq!(
        (&response["created"], &response["updated"]),
        (&json!(1), &json!(1))
    );
    let refused = import("name,volume\nC,x\nD,y\n", &[], CHOSEN);
    assert_eq!(refused.status.code(), Some(1));
    let problems = text(&refused.stderr);
    assert!(
        problems.contains("\nrows[2].volume: ") && problems.contains("\nrows[3].volume: "),
        "{problems}"
    );
    let unknown = import("name\nC\n", &["-o", "bogus=1"], CHOSEN);
    let words = text(&unknown.stderr);
    assert!(unknown.status.code() == Some(1) && unknown.stdout.is_empty());
    assert!(
        words.contains("there is no option \"bogus\"") && words.contains("decimal"),
        "{words}"
    );
    let without = import("name\nC\n", &[], " ");
    assert!(text(&without.stderr).contains("LABDATA_API_KEY is not set, or empty"));
    let with_prefix = format!("{}/api/v1/", program.url);
    let prefixed = import(
        "name\nE\n",
        &["--dry-run", "--base-url", &with_prefix],
        CHOSEN,
    );
    assert_eq!(
        text(&prefixed.stdout).trim(),
        "dry run: 1 created, 0 updated"
    );
    let stranger = import("name\nC\n", &[], "ldk_wrong");
    assert_eq!(
        (stranger.status.code(), text(&stranger.stdout)),
        (Some(1), String::new())
    );
}

/// Everything below a directory that accounts but the owner may read or write.
fn open_to_others(directory: &Path) -> Vec<PathBuf> {
    // The running program and its PostgreSQL remove what they no longer need meanwhile.
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Vec::new(),
        entries => entries.unwrap(),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.unwrap();
        let metadata = match entry.metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            metadata => metadata.unwrap(),
        };
        // A program's own directories hold what other accounts may run; a socket asks for a password.
        let is_program = ["cache", "jobs"].contains(&&*entry.file_name().to_string_lossy());
        if metadata.is_dir() && !is_program {
            found.extend(open_to_others(&entry.path()));
        }
        let is_plain = metadata.is_dir() || metadata.is_file();
        if is_plain && !is_program && metadata.mode() & 0o066 != 0 {
            found.push(entry.path());
        }
    }
    found
}

#[tokio::test]
async fn what_the_program_writes_is_closed_to_other_accounts() {
    let directory = directory();
    let data = directory.path().join(".labdata");
    // A directory that an earlier version, or an operator, made.
    std::fs::create_dir_all(data.join("objects")).unwrap();
    for adopted in [&data, &data.join("objects")] {
        std::fs::set_permissions(adopted, Permissions::from_mode(0o755)).unwrap();
    }
    let program = Program::serve(directory.path(), &[("LABDATA_BOOTSTRAP_KEY", CHOSEN)]);
    let instrument = json!({"name": "reader"});
    let path = "/api/v1/instruments";
    let (_, instrument) = call(&program, CHOSEN, Method::POST, path, instrument).await;
    let id = instrument["id"].as_str().unwrap().to_owned();
    let form = Form::new()
        .text("instrument_id", id)
        .part("file", Part::bytes(b"1,2".to_vec()).file_name("plate.csv"));
    let upload = Client::new().post(format!("{}/api/v1/files", program.url));
    let upload = upload.bearer_auth(CHOSEN).multipart(form);
    assert_eq!(upload.send().await.unwrap().status(), StatusCode::OK);
    assert_eq!(data.metadata().unwrap().mode() & 0o006, 0);
    assert_eq!(open_to_others(&data), Vec::<PathBuf>::new());

    let backup = directory.path().join("backup");
    std::fs::create_dir(&backup).unwrap();
    std::fs::set_permissions(&backup, Permissions::from_mode(0o777)).unwrap();
    succeeds(directory.path(), &["backup", "backup"]);
    assert_eq!(backup.metadata().unwrap().mode() & 0o077, 0);
    assert_eq!(open_to_others(&backup), Vec::<PathBuf>::new());
    assert_eq!(program.end("TERM").0.code(), Some(0));
}

#[tokio::test]
async fn what_was_acknowledged_survives_kill_9() {
    let directory = directory();
    let program = Program::serve(directory.path(), &[("LABDATA_BOOTSTRAP_KEY", CHOSEN)]);
    assert_eq!(program.key, None, "a chosen key is never printed");
    let definition = json!({
        "semantic_category": "curated",
        "columns": [{"name": "name", "data_type": "string"}],
    });
    let (status, response) = call(
        &program,
        CHOSEN,
        Method::PUT,
        "/api/v1/tables/sample",
        definition,
    )
    .await;
    assert_eq!(status, StatusCode::OK, "{response}");
    let rows = json!({"tables": [{"table": "sample", "rows": [{"name": "a"}, {"name": "b"}]}]});
    let (status, response) = call(&program, CHOSEN, Method::POST, "/api/v1/data/write", rows).await;
    assert_eq!(status, StatusCode::OK, "{response}");
    assert_eq!(program.end("KILL").0.signal(), Some(9));

    let program = Program::serve(directory.path(), &[]);
    let read = json!({"target_name": "sample", "target_type": "table"});
    let (status, rows) = call(&program, CHOSEN, Method::POST, "/api/v1/tools/read", read).await;
    assert_eq!(
        (status, rows.as_array().map(Vec::len)),
        (StatusCode::OK, Some(2)),
        "{rows}"
    );
    assert_eq!(program.end("TERM").0.code(), Some(0));
}

#[tokio::test]
async fn the_operator_makes_lists_and_revokes_keys_beside_a_running_server() {
    let directory = directory();
    let program = Program::serve(directory.path(), &[]);
    let create = "api-key create --organization LabB --user ada@example.org --scopes";
    let arguments: Vec<&str> = create.split(' ').chain(["read,write"]).collect();
    let made = run(&mut labdata(directory.path(), &arguments));
    let (key, said) = (text(&made.stdout), text(&made.stderr));
    let key = key.trim().to_owned();
    for created in [
        "the organization \"LabB\" did not exist and was created",
        "the user ada@example.org did not exist and was created",
    ] {
        assert!(said.contains(created), "{said}");
    }
    let again = run(&mut labdata(directory.path(), &arguments));
    let said = text(&again.stderr);
    assert!(!said.contains("was created"), "{said}");
    assert_eq!(instruments(&program, &key).await, StatusCode::OK);

    let options = "read --name n --expires-in-days 7 --json";
    let arguments: Vec<&str> = create.split(' ').chain(options.split(' ')).collect();
    let json = succeeds(directory.path(), &arguments);
    let made: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&made["name"], &made["scopes"]),
        (&json!("n"), &json!(["read"]))
    );
    assert!(made["expires_at"].is_string());

    let listed: Value =
        serde_json::from_str(&succeeds(directory.path(), &["api-key", "list", "--json"])).unwrap();
    let organizations: Vec<&Value> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|key| &key["organization"])
        .collect();
    assert_eq!(organizations, ["default", "LabB", "LabB", "LabB"]);
    assert!(
        listed
            .as_array()
            .unwrap()
            .iter()
            .all(|key| key.get("key").is_none())
    );

    // A key that the server has not seen yet is refused at once.
    let prefix = made["prefix"].as_str().unwrap();
    succeeds(directory.path(), &["api-key", "revoke", prefix]);
    let revoked = made["key"].as_str().unwrap();
    assert_eq!(
        instruments(&program, revoked).await,
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(program.end("TERM").0.code(), Some(0));
}

#[test]
fn commands_that_cannot_be_carried_out_end_with_1_and_one_line() {
    let directory = directory();
    let create = [
        "api-key",
        "create",
        "--organization",
        "x",
        "--user",
        "a@b",
        "--scopes",
        "read,everything",
    ];
    let busy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = busy.local_addr().unwrap().to_string();
    let cases: [(&[&str], &str); 3] = [
        (&create, "it takes any of read, write, admin"),
        (&["serve", "--bind", &taken], "cannot listen on"),
        (
            &["demo", "--exit", "--file", "missing.txt"],
            "cannot read missing.txt",
        ),
    ];
    for (arguments, expected) in cases {
        let output = run(labdata(directory.path(), arguments).env("LABDATA_LOG", "off"));
        let line = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{line}");
        assert!(
            line.contains(expected) && line.lines().count() == 1,
            "{line}"
        );
    }
}

#[test]
fn the_openapi_document_needs_no_settings() {
    let directory = directory();
    let mut command = labdata(directory.path(), &["openapi"]);
    let output = run(command.env("LABDATA_BIND", "nonsense"));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["info"]["version"], "1.0.0");
}

#[test]
fn the_supervisor_of_runs_is_part_of_the_program_but_not_of_its_help() {
    let directory = directory();
    let help = run(&mut labdata(directory.path(), &["--help"]));
    assert!(!text(&help.stdout).contains("supervisor"));
    // Without a launch request it reports that as an event for the runner.
    let output = run(&mut labdata(directory.path(), &["run-supervisor"]));
    assert!(!output.status.success());
    let event: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(
        event["Failed"]
            .as_str()
            .unwrap()
            .contains("no launch request")
    );
}

#[tokio::test]
async fn a_client_of_another_machine_gets_urls_that_it_can_reach() {
    let directory = directory();
    let settings = [("LABDATA_BOOTSTRAP_KEY", CHOSEN)];
    let program = Program::serve_everywhere(directory.path(), &settings);
    // Every address of 127.0.0.0/8 is this machine; the server does not know that it has this one.
    let elsewhere = program.url.replace("127.0.0.1", "127.0.0.2");
    assert_ne!(elsewhere, program.url);
    let client = Client::new();
    let post = async |path: &str, body: Value| {
        let url = format!("{elsewhere}/api/v1/{path}");
        let request = client.post(url).bearer_auth(CHOSEN).json(&body);
        request.send().await.unwrap().json::<Value>().await.unwrap()
    };
    let instrument = post("instruments", json!({"name": "reader"})).await;
    let wanted = json!({"file_name": "a.csv", "instrument_id": instrument["id"]});
    let begun = post("files/upload-url", wanted).await;
    let url = begun["upload_url"].as_str().unwrap();
    assert!(url.starts_with(&elsewhere), "{url}");
    let mut put = client.put(url).body("123456789");
    for (name, value) in begun["headers"].as_object().unwrap() {
        put = put.header(name, value.as_str().unwrap());
    }
    assert_eq!(put.send().await.unwrap().status(), StatusCode::OK);
    let id = begun["file_id"].as_str().unwrap();
    post(&format!("files/{id}/confirm-upload"), Value::Null).await;
    let content = client.get(format!("{elsewhere}/api/v1/files/{id}/content"));
    let content: Value = content
        .bearer_auth(CHOSEN)
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    let url = content["download_url"].as_str().unwrap();
    assert!(url.starts_with(&elsewhere), "{url}");
    let bytes = client.get(url).send().await.unwrap().text().await.unwrap();
    assert_eq!(bytes, "123456789");
    let (status, rest) = program.end("TERM");
    assert_eq!(status.code(), Some(0));
    assert!(rest.contains("LABDATA_PUBLIC_URL"), "{rest}");
}

/// Runs `labdata migrate` on the database, which it cannot use; returns its one line.
#[track_caller]
fn cannot_use(url: &str) -> String {
    let directory = directory();
    let mut command = labdata(directory.path(), &["migrate", "--database-url", url]);
    let output = run(&mut command);
    let line = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{line}");
    assert_eq!(line.lines().count(), 1, "{line}");
    assert!(!line.contains("hunter2"), "{line}");
    line
}

#[test]
fn a_database_that_does_not_answer_is_tried_for_30_s_and_named_with_the_cause_in_one_line() {
    let begun = std::time::Instant::now();
    let line = cannot_use("postgresql://lab:hunter2@127.0.0.1:1/lab");
    assert!((28..40).contains(&begun.elapsed().as_secs()));
    assert!(line.contains("127.0.0.1:1"), "{line}");
    assert!(line.contains("Connection refused"), "{line}");
}

#[tokio::test]
async fn a_database_that_refuses_is_not_waited_for() {
    let own = labdata_test_database::TestDatabase::new().await;
    let (server, _) = own.url().rsplit_once('/').unwrap();
    let begun = std::time::Instant::now();
    let line = cannot_use(&format!("{server}/unknown_database"));
    assert!(begun.elapsed().as_secs() < 20);
    assert!(line.contains("unknown_database"), "{line}");
}

#[test]
fn plain_http_to_a_cluster_on_another_machine_is_one_warning_at_start() {
    let directory = directory();
    let warnings = |cluster: &str| {
        let mut child = labdata(directory.path(), &["worker"])
            .env("LABDATA_LOG", "warn")
            .env("LABDATA_JOB_BACKEND", format!("ray+{cluster}"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        assert_ne!(lines.read_line(&mut line).unwrap(), 0, "it did not start");
        let kill = format!("kill -TERM {}", child.id());
        let sent = Command::new("sh").args(["-c", &kill]).status().unwrap();
        assert!(sent.success());
        let output = child.wait_with_output().unwrap();
        text(&output.stderr).matches("without encryption").count()
    };
    assert_eq!(warnings("http://198.51.100.7:8265"), 1);
    assert_eq!(warnings("http://127.0.0.1:8265"), 0);
    assert_eq!(warnings("https://198.51.100.7:8265"), 0);
}

/// A mistyped data directory must not become a platform.
#[test]
fn commands_for_a_platform_that_exists_make_none() {
    let directory = directory();
    for command in [
        &["api-key", "list"][..],
        &["api-key", "revoke", "abcdefgh"],
        &["sign-in"],
        &["audit", "verify"],
    ] {
        let output = run(&mut labdata(directory.path(), command));
        assert_eq!(output.status.code(), Some(1), "{command:?}");
        let said = text(&output.stderr);
        assert!(said.contains("there is nothing to "), "{said}");
        assert!(said.contains("set LABDATA_DATA_DIR"), "{said}");
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}
