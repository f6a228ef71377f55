//! `labdata doctor`, beside servers that answer and that do not.

use std::{
    collections::BTreeMap,
    fs,
    net::TcpListener,
    process::{Command, Output},
};

use labdata_test_database::TestDatabase;
use labdata_test_llm::{Provider, Reply};
use tokio_postgres::NoTls;

use crate::{
    process::{Program, directory, labdata, run, text},
    smtp_sink::{Behavior, Sink},
};

/// Lines by name of their check: the mark and the text.
fn lines(output: &Output) -> BTreeMap<String, (String, String)> {
    let displayed = text(&output.stdout);
    let line = |line: &str| {
        let (mark, rest) = line.split_once(' ').unwrap();
        let (name, text) = rest.trim_start().split_once("  ").unwrap();
        (
            name.to_owned(),
            (mark.to_owned(), text.trim_start().to_owned()),
        )
    };
    displayed.lines().map(line).collect()
}

fn doctor(directory: &std::path::Path) -> Command {
    let mut command = labdata(directory, &["doctor"]);
    // The machine of a test may offer none.
    command.env("LABDATA_JOB_ISOLATION", "none");
    command
}

/// An address without a server.
fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

#[test]
fn a_machine_without_any_setting_is_checked_and_left_as_it_was() {
    let directory = directory();
    let output = run(&mut doctor(directory.path()));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let marks: Vec<(String, String)> = lines(&output)
        .into_iter()
        .map(|(name, (mark, _))| (name, mark))
        .collect();
    let expected = [
        ("LLM", "-"),
        ("OpenID", "-"),
        ("Python", "ok"),
        ("Ray", "-"),
        ("SMTP", "-"),
        ("database", "ok"),
        ("file readers", "-"),
        ("job isolation", "ok"),
        ("settings", "ok"),
        ("storage", "ok"),
        ("uv", "ok"),
    ];
    let expected = expected.map(|(name, mark)| (name.to_owned(), mark.to_owned()));
    assert_eq!(marks, expected);
    let left = fs::read_dir(directory.path()).unwrap().count();
    assert_eq!(left, 0, "it left something");
}

#[test]
fn a_data_directory_of_others_is_a_failed_check() {
    let directory = directory();
    fs::write(directory.path().join("thesis.txt"), "").unwrap();
    let output = run(doctor(directory.path()).env("LABDATA_DATA_DIR", directory.path()));
    let lines = lines(&output);
    let (mark, text) = &lines["settings"];
    assert_eq!(mark, "FAIL");
    assert!(text.contains("holds other files"), "{text}");
}

#[test]
fn a_wrong_setting_is_a_failed_check() {
    let directory = directory();
    let output = run(doctor(directory.path()).env("LABDATA_BIND", "nowhere"));
    assert_eq!(output.status.code(), Some(1));
    let lines = lines(&output);
    let (mark, line) = &lines["settings"];
    assert_eq!(mark, "FAIL");
    assert!(line.starts_with("LABDATA_BIND is \"nowhere\""), "{line}");
    assert_eq!(lines.len(), 1, "nothing else can be checked");
    assert_eq!(
        text(&output.stderr),
        "labdata: to be fixed first: settings\n"
    );
}

#[test]
fn what_does_not_answer_is_named_with_the_setting_and_without_secrets() {
    let directory = directory();
    let dead = nobody();
    let mut command = doctor(directory.path());
    command
        .env(
            "DATABASE_URL",
            format!("postgresql://lab:hunter2@{dead}/lab"),
        )
        .env("LABDATA_STORAGE_URL", "file:///proc/nowhere/objects")
        .env("LABDATA_ML_BACKEND", format!("ray+http://{dead}"))
        .env(
            "LABDATA_SMTP_URL",
            format!("smtp://lab:hunter2@{dead}?tls=none"),
        )
        .env("LABDATA_MAIL_FROM", "lab@example.org")
        .env("LABDATA_LLM_PROVIDER", "openai")
        .env("LABDATA_LLM_BASE_URL", format!("http://{dead}/v1"))
        .env("LABDATA_LLM_API_KEY", "hunter2")
        .env("LABDATA_LLM_MODEL", "some-model")
        .env("LABDATA_OIDC_ISSUER", format!("http://{dead}"))
        .env("LABDATA_OIDC_CLIENT_ID", "lab")
        .env("LABDATA_OIDC_CLIENT_SECRET", "hunter2")
        .env("LABDATA_OIDC_ROLES", "*=viewer");
    let output = run(&mut command);
    assert_eq!(output.status.code(), Some(1));
    let displayed = lines(&output);
    for (name, setting) in [
        ("database", "DATABASE_URL"),
        ("storage", "write access"),
        ("Ray", "LABDATA_ML_BACKEND"),
        ("SMTP", "LABDATA_SMTP_URL"),
        ("LLM", "LABDATA_LLM_PROVIDER"),
        ("OpenID", "LABDATA_OIDC_ISSUER"),
    ] {
        let (mark, line) = &displayed[name];
        assert_eq!(mark, "FAIL", "{name}: {line}");
        assert!(line.contains(setting), "{name}: {line}");
    }
    assert!(!text(&output.stdout).contains("hunter2"));
    assert_eq!(
        text(&output.stderr),
        "labdata: to be fixed: database, storage, Ray, SMTP, LLM, OpenID\n"
    );
}

#[test]
fn half_a_setup_says_what_is_missing() {
    let directory = directory();
    let mut command = doctor(directory.path());
    command
        .env("LABDATA_MAIL_FROM", "lab@example.org")
        .env("LABDATA_LLM_PROVIDER", "openai");
    let displayed = lines(&run(&mut command));
    assert!(displayed["SMTP"].1.contains("set LABDATA_SMTP_URL"));
    assert!(displayed["LLM"].1.contains("set LABDATA_LLM_MODEL"));
}

#[tokio::test]
async fn what_everyone_may_use_on_the_server_of_another_is_named_with_the_script_that_revokes_it() {
    let own = TestDatabase::unmigrated().await;
    let (server, name) = own.url().rsplit_once('/').unwrap();
    let role = format!("platform_of_{name}");
    let (behind, connection) = tokio_postgres::connect(own.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    // As an administrator sets the platform up who gives it no more than it needs.
    let setup =
        format!("CREATE ROLE {role} LOGIN CREATEROLE; ALTER DATABASE {name} OWNER TO {role}");
    behind.batch_execute(&setup).await.unwrap();
    let (_, host) = server.split_once('@').unwrap();
    let url = format!("postgresql://{role}@{host}/{name}");
    let directory = directory();
    let mut command = doctor(directory.path());
    command.env("DATABASE_URL", url);
    let ended = tokio::task::spawn_blocking(move || run(&mut command));
    let (mark, line) = &lines(&ended.await.unwrap())["database"];
    assert_eq!(mark, "ok", "{line}");
    assert!(line.contains("everyone may use pg_sleep, "), "{line}");
    assert!(line.ends_with("docs/deploy/revoke-public.sql"), "{line}");
}

#[tokio::test]
async fn it_looks_at_the_database_of_a_running_server_its_mail_server_and_its_model() {
    let directory = directory();
    let server = Program::serve(directory.path(), &[]);
    let mail = Sink::start(Behavior::Accepts).await;
    let model = Provider::start().await;
    model.will(Reply::text("hello"));
    let mut command = doctor(directory.path());
    command
        .env("LABDATA_SMTP_URL", mail.url())
        .env("LABDATA_MAIL_FROM", "lab@example.org")
        .env("LABDATA_LLM_PROVIDER", "openai")
        .env("LABDATA_LLM_BASE_URL", model.base_url())
        .env("LABDATA_LLM_API_KEY", "key")
        .env("LABDATA_LLM_MODEL", "some-model");
    let ended = tokio::task::spawn_blocking(move || run(&mut command));
    let output = ended.await.unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let displayed = lines(&output);
    let database = &displayed["database"].1;
    assert!(database.contains("up to date"), "{database}");
    assert!(
        database.contains("in use by a running server"),
        "{database}"
    );
    assert!(displayed["storage"].1.ends_with("accepts objects"));
    assert_eq!(displayed["SMTP"].0, "ok");
    assert_eq!(displayed["LLM"].1, "some-model responds");
    assert!(mail.received().is_empty(), "no e-mail is sent");
    // The server keeps running.
    let health = reqwest::get(format!("{}/healthz", server.url)).await;
    assert!(health.unwrap().status().is_success());
}
