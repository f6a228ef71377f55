//! Ends of snippets: limits, callers that leave, packages that are missing.

use std::{sync::Arc, time::Duration};

use labdata_domain::agent::{PythonEnd, PythonUnavailable};
use labdata_ports::agent::PythonSandbox;
use labdata_python_sandbox::{SnippetSandbox, SnippetSettings};
use labdata_sandbox::{Sandbox, Settings};

use crate::support::{Lab, mark, processes_with, until, workspaces_with};

#[tokio::test]
async fn a_snippet_that_does_not_end_is_ended_with_its_output() {
    let lab = Lab::with(SnippetSettings {
        time_limit: Duration::from_secs(3),
        ..SnippetSettings::default()
    });
    let outcome = lab.run("print('begun')\nwhile True: pass").await;
    assert_eq!(outcome.end, PythonEnd::TimedOut);
    assert_eq!(outcome.stdout.display(), "begun\n");
}

#[tokio::test]
async fn memory_is_limited() {
    let lab = Lab::new();
    let whole = lab.run("import numpy\nnumpy.ones(1 << 28)").await;
    assert_eq!(whole.end, PythonEnd::Memory);
    let steps = "parts = []\nwhile True: parts.append(b'x' * (10 << 20))";
    assert_eq!(lab.run(steps).await.end, PythonEnd::Memory);
}

#[tokio::test]
async fn the_disk_space_of_a_snippet_is_limited_and_freed() {
    let lab = Lab::new();
    let mark = mark();
    let code = format!(
        "open('{mark}', 'w')\nimport time\nfor number in range(100):\n    \
         open(str(number), 'wb').write(b'x' * (16 << 20))\ntime.sleep(60)"
    );
    assert_eq!(lab.run(&code).await.end, PythonEnd::Scratch);
    assert_eq!(workspaces_with(&mark), 0);
}

#[tokio::test]
async fn the_processes_of_a_caller_who_leaves_end() {
    let lab = Lab::new();
    let mark = mark();
    let code = format!(
        "import subprocess, sys, time\nopen('{mark}', 'w')\n\
         subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)', '{mark}'], \
         start_new_session=True)\ntime.sleep(600)"
    );
    let (snippets, snippet) = (Arc::clone(&lab.snippets), lab.snippet(&code));
    let running = tokio::spawn(async move { snippets.run(snippet).await });
    until("the snippet runs", || processes_with(&mark) > 0).await;
    assert_eq!(workspaces_with(&mark), 1);
    running.abort();
    until("its processes end", || processes_with(&mark) == 0).await;
    until("its files are gone", || workspaces_with(&mark) == 0).await;
}

#[tokio::test]
async fn an_organization_waits_for_its_own_snippets_only() {
    let lab = Lab::with(SnippetSettings {
        concurrency: 2,
        ..SnippetSettings::default()
    });
    lab.output("").await;
    let mark = mark();
    let code = format!("open('{mark}', 'w')\nimport time; time.sleep(600)");
    let (snippets, snippet) = (Arc::clone(&lab.snippets), lab.snippet(&code));
    let running = tokio::spawn(async move { snippets.run(snippet).await });
    until("the snippet runs", || workspaces_with(&mark) == 1).await;
    let own = lab.snippets.run(lab.snippet("1")).await;
    assert_eq!(own, Err(PythonUnavailable::Busy));
    let other = Lab::new().organization;
    let snippet = labdata_ports::agent::PythonSnippet {
        organization: other,
        ..lab.snippet("40 + 2")
    };
    let outcome = lab.snippets.run(snippet).await.unwrap();
    assert_eq!(outcome.value.as_deref(), Some("42"));
    running.abort();
}

#[tokio::test]
async fn missing_packages_are_a_clear_error() {
    let data = tempfile::tempdir().unwrap();
    std::fs::set_permissions(
        data.path(),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let supervisor = env!("CARGO_BIN_EXE_labdata-python-supervisor").into();
    let sandbox = Sandbox::new(Settings {
        // A program that fails as uv does.
        uv: Some("/bin/false".into()),
        ..Settings::new(data.path().to_owned(), vec![supervisor])
    });
    let snippets = SnippetSandbox::new(Arc::new(sandbox), SnippetSettings::default());
    let refused = snippets.run(Lab::new().snippet("1")).await.unwrap_err();
    assert!(
        matches!(
            refused,
            PythonUnavailable::NotInstalled | PythonUnavailable::Unavailable(_)
        ),
        "{refused}"
    );
}
