//! Sources of settings, and the messages for wrong ones.

use std::{fs, path::Path, process::Command};

use crate::process::{directory, labdata, run, text};

/// The command ends with 2 and one line on standard error, which is returned.
#[track_caller]
fn refused(command: &mut Command) -> String {
    let output = run(command);
    let line = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{line}");
    assert_eq!(text(&output.stdout), "");
    assert_eq!(line.lines().count(), 1, "{line}");
    line.trim_end().to_owned()
}

fn serve(directory: &Path) -> Command {
    labdata(directory, &["serve"])
}

#[test]
fn a_wrong_variable_is_refused_by_its_name() {
    let directory = directory();
    assert_eq!(
        refused(serve(directory.path()).env("LABDATA_BIND", "nowhere")),
        "labdata: LABDATA_BIND is \"nowhere\"; it takes an IP address and a port, such as \
         127.0.0.1:8080"
    );
    let line = refused(serve(directory.path()).env("LABDATA_STORAGE_URL", "ftp://bucket"));
    assert!(line.contains("LABDATA_STORAGE_URL"), "{line}");
    assert!(line.contains("it takes file://"), "{line}");
    assert_eq!(
        refused(serve(directory.path()).env("LABDATA_STORAGE_QUOTA", "5 GB")),
        "labdata: LABDATA_STORAGE_QUOTA is \"5 GB\"; it takes a number of bytes, at least 1"
    );
    let replica = "postgresql://user:hunter2@replica/lab";
    assert_eq!(
        refused(serve(directory.path()).env("LABDATA_QUERY_DATABASE_URL", replica)),
        "labdata: LABDATA_QUERY_DATABASE_URL names a replica of DATABASE_URL, which is not set"
    );
    let line = refused(serve(directory.path()).env("LABDATA_UPLOAD_MODE", "direct"));
    assert!(line.contains("LABDATA_UPLOAD_MODE"), "{line}");
    assert!(line.contains("a cloud"), "{line}");
    let line = refused(serve(directory.path()).env("LABDATA_BOOTSTRAP_KEY", "hunter2"));
    assert!(
        line.contains("LABDATA_BOOTSTRAP_KEY") && !line.contains("hunter2"),
        "{line}"
    );
}

/// Its rights stay as they are.
#[test]
fn a_data_directory_of_others_is_refused_before_it_is_touched() {
    use std::os::unix::fs::PermissionsExt;
    let directory = directory();
    let file = directory.path().join("passwd");
    fs::write(&file, "root").unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    for (path, reason) in [
        (&*file, "is no directory"),
        (directory.path(), "holds other files"),
    ] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
        let line = refused(serve(directory.path()).env("LABDATA_DATA_DIR", path));
        assert!(line.contains(reason), "{line}");
        assert!(line.ends_with("name a directory of its own"), "{line}");
        assert_eq!(mode(path), 0o777);
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn half_an_identity_provider_is_refused() {
    let directory = directory();
    let line = |settings: &[(&str, &str)]| {
        let mut command = serve(directory.path());
        command.env("LABDATA_OIDC_CLIENT_SECRET", "hunter2");
        let line = refused(command.envs(settings.iter().copied()));
        assert!(!line.contains("hunter2"), "{line}");
        line
    };
    let issuer = ("LABDATA_OIDC_ISSUER", "https://id.example.org");
    let client = ("LABDATA_OIDC_CLIENT_ID", "labdata");
    let plain = line(&[("LABDATA_OIDC_ISSUER", "http://id.example.org"), client]);
    assert!(
        plain.contains("http is accepted on this machine only"),
        "{plain}"
    );
    assert_eq!(
        line(&[issuer]),
        "labdata: LABDATA_OIDC_CLIENT_ID is missing: LABDATA_OIDC_ISSUER needs it"
    );
    assert_eq!(
        line(&[client]),
        "labdata: LABDATA_OIDC_ISSUER is missing: LABDATA_OIDC_CLIENT_ID is of no use without it"
    );
    assert_eq!(
        line(&[issuer, client]),
        "labdata: LABDATA_OIDC_ROLES is missing: LABDATA_OIDC_ISSUER needs it"
    );
    let roles = ("LABDATA_OIDC_ROLES", "lab=owner");
    assert!(line(&[issuer, client, roles]).contains("lab-admins=admin"));
    let roles = ("LABDATA_OIDC_ROLES", "lab=member");
    let scopes = ("LABDATA_OIDC_SCOPES", "profile");
    assert!(line(&[issuer, client, roles, scopes]).contains("lacks the scope openid"));
    let domains = ("LABDATA_OIDC_CREATE_USERS", "true");
    assert!(line(&[issuer, client, roles, domains]).contains("LABDATA_OIDC_CREATE_USERS"));
}

#[test]
fn a_wrong_file_is_refused_by_its_name_and_key() {
    let directory = directory();
    let file = directory.path().join("labdata.toml");
    let cases = [
        (
            "bnid = \"127.0.0.1:0\"",
            "labdata.toml: there is no setting \"bnid\"",
        ),
        ("bind = \"x\"", "bind in labdata.toml is \"x\""),
        (
            "job_concurrency = 0",
            "job_concurrency in labdata.toml is \"0\"",
        ),
        (
            "log_format = true",
            "labdata.toml: log_format takes a string or a number",
        ),
        ("log = \"info\"\nbind = ", "labdata.toml: line 2: "),
    ];
    for (content, expected) in cases {
        fs::write(&file, content).unwrap();
        let line = refused(&mut serve(directory.path()));
        assert!(line.contains(expected), "{line}");
    }
}

#[test]
fn a_file_that_was_named_must_be_there() {
    let directory = directory();
    let line = refused(&mut labdata(
        directory.path(),
        &["serve", "--config", "other.toml"],
    ));
    assert!(line.contains("other.toml"), "{line}");
}

#[test]
fn the_environment_beats_the_file_and_a_flag_beats_both() {
    let directory = directory();
    fs::write(
        directory.path().join("labdata.toml"),
        "bind = \"from file\"",
    )
    .unwrap();
    let line = refused(serve(directory.path()).env("LABDATA_BIND", "from environment"));
    assert!(
        line.contains("LABDATA_BIND is \"from environment\""),
        "{line}"
    );
    let line = refused(&mut serve(directory.path()));
    assert!(line.contains("\"from file\""), "{line}");
    let line = refused(
        serve(directory.path())
            .env("LABDATA_BIND", "from environment")
            .args(["--bind", "from flag"]),
    );
    assert!(line.contains("--bind is \"from flag\""), "{line}");
}

#[test]
fn an_empty_variable_is_no_setting() {
    let directory = directory();
    let mut command = labdata(directory.path(), &["serve", "--log-format", "xml"]);
    let line = refused(command.env("LABDATA_BIND", ""));
    assert!(line.contains("--log-format"), "{line}");
}

#[test]
fn a_wrong_call_is_one_line() {
    let directory = directory();
    let line = refused(&mut labdata(directory.path(), &["serve", "--bnid", "x"]));
    assert!(line.contains("--bnid"), "{line}");
    let line = refused(&mut labdata(
        directory.path(),
        &["api-key", "create", "--user", "a@b"],
    ));
    assert!(line.contains("--organization <NAME>"), "{line}");
}

#[test]
fn the_help_lists_every_setting_of_the_contract() {
    let directory = directory();
    let output = run(&mut labdata(directory.path(), &["serve", "--help"]));
    assert!(output.status.success());
    let help = text(&output.stdout);
    let words: Vec<&str> = help.split_whitespace().collect();
    for (variable, default) in [
        ("LABDATA_BIND", "127.0.0.1:8080]"),
        ("LABDATA_DATA_DIR", "./.labdata]"),
        ("DATABASE_URL", "unset:"),
        ("LABDATA_STORAGE_URL", "file://<data"),
        ("LABDATA_UPLOAD_MODE", "gateway]"),
        ("LABDATA_PUBLIC_URL", "http://<bind>]"),
        ("LABDATA_BOOTSTRAP_KEY", "unset:"),
        ("LABDATA_JOB_BACKEND", "local]"),
        ("LABDATA_ML_BACKEND", "local]"),
        ("LABDATA_LLM_PROVIDER", "unset:"),
        ("LABDATA_LLM_BASE_URL", "unset:"),
        ("LABDATA_LLM_API_KEY", "unset]"),
        ("LABDATA_LLM_MODEL", "unset]"),
        ("LABDATA_LLM_MODELS", "unset:"),
        ("LABDATA_LLM_TIMEOUT_SECONDS", "60]"),
        ("LABDATA_AGENT_MAX_STEPS", "25]"),
        ("LABDATA_AGENT_MAX_TOOL_CALLS", "50]"),
        ("LABDATA_AGENT_TIMEOUT_MINUTES", "10]"),
        ("LABDATA_AGENT_CONCURRENCY", "4]"),
        ("LABDATA_AGENT_MONTHLY_TOKENS", "unset:"),
        ("LABDATA_AGENT_PYTHON_CONCURRENCY", "4]"),
        ("LABDATA_SMTP_URL", "unset:"),
        ("LABDATA_MAIL_FROM", "unset:"),
        ("LABDATA_NOTIFICATIONS_PER_HOUR", "60]"),
        ("LABDATA_NOTIFICATIONS_PER_DAY", "1000]"),
        ("LABDATA_JOB_CONCURRENCY", "2]"),
        ("LABDATA_LOG", "info;"),
        ("LABDATA_LOG_FORMAT", "text]"),
        ("LABDATA_PG_BIN_DIR", "unset:"),
    ] {
        assert!(
            words.contains(&&*format!("{variable}]")),
            "{variable} in {help}"
        );
        assert!(words.contains(&default), "{default} in {help}");
    }
}
