//! Installation of declared dependencies. Some of these tests need a package index.

use std::{process::Command, sync::Arc, time::Duration};

use labdata_domain::jobs::ScriptMetadata;
use labdata_local_runner::LocalRunner;
use labdata_port_contracts::work::{end_of, log_from, spec};
use labdata_ports::work::runner::{EndReason, JobRunner, RunnerError};
use labdata_sandbox::{
    DeclaredPackages, EnvironmentOutcome, EnvironmentRequest,
    Isolation::{Landlock, Namespaces},
    Limits, Sandbox, Settings, stop_channel,
};

use crate::{
    packages::{isolation_of, open_directory, write_package, write_wheel},
    support::{Lab, settings},
};

const SCRIPT: &str = "# /// script\n# dependencies = [\"six==1.16.0\"]\n# ///\nimport six, sys\n\
print(six.__version__)\ntry:\n    open(six.__file__, 'a')\n    print('CAN write')\nexcept OSError:\n    pass\n";

fn runner(settings: Settings) -> LocalRunner {
    LocalRunner::new(Arc::new(Sandbox::new(settings)))
}

async fn a_declared_dependency_is_there(lab: &Lab) {
    let first = spec(SCRIPT);
    let (end, log) = lab.run(&first).await;
    assert!(end.succeeded(), "this test installs a package: {end:?}");
    assert!(log.contains("1.16.0\n"), "{log}");
    assert!(!log.contains("CAN write"), "{log}");

    // Another run of the same organization needs neither the index nor uv.
    let mut second = spec(SCRIPT);
    second.organization = first.organization;
    let (end, log) = lab.run(&second).await;
    assert!(end.succeeded(), "{end:?}");
    assert_eq!(log, "1.16.0\n", "nothing was prepared");
    for run in [first.run, second.run] {
        lab.runner.reap(run).await.unwrap();
    }
}

#[tokio::test]
async fn a_declared_dependency_is_there_and_cannot_be_changed() {
    a_declared_dependency_is_there(&Lab::new(Namespaces)).await;
}

#[tokio::test]
async fn a_declared_dependency_is_there_under_landlock() {
    a_declared_dependency_is_there(&Lab::new(Landlock)).await;
}

/// Completes an environment; refuses to do so twice.
const COMPLETION: &str = "import os, sys\nos.mkdir(os.path.join(sys.prefix, 'completed'))\n";

/// Installs the packages of [`SCRIPT`] as one more server on that data directory.
async fn install_as_another_server(lab: &Lab, organization: &str) -> EnvironmentOutcome {
    let sandbox = Sandbox::new(settings(lab.data.path(), Landlock));
    let host = sandbox.host().await.unwrap();
    let workspace = host.workspace("packages");
    let active = host.activate(&workspace, SCRIPT).await.unwrap();
    let metadata = ScriptMetadata::read(SCRIPT).unwrap().unwrap();
    let packages = DeclaredPackages {
        block: metadata.block,
        dependencies: metadata.dependencies,
        requires_python: metadata.requires_python,
    };
    let five_minutes = Duration::from_mins(5);
    let request = EnvironmentRequest {
        scope: organization,
        packages: Some(&packages),
        completion: Some(COMPLETION),
        limits: Limits {
            wall_clock: five_minutes,
            cpu_time: five_minutes,
            memory: 4 << 30,
            file_size: 1 << 30,
            scratch: 1 << 30,
            processes: 512,
            grace: Duration::from_secs(1),
        },
    };
    let (_stop, mut signal) = stop_channel();
    let installed = host.script_environment(&active, request, &mut signal, |_| ());
    installed.await.unwrap()
}

#[tokio::test]
async fn packages_that_several_servers_need_at_once_are_installed_by_one() {
    let lab = Lab::new(Landlock);
    let organization = spec(SCRIPT).organization.to_string();
    let install = || install_as_another_server(&lab, &organization);
    let (one, two, three) = tokio::join!(install(), install(), install());
    for outcome in [one, two, three] {
        assert!(
            matches!(outcome, EnvironmentOutcome::Installed(_)),
            "{outcome:?}"
        );
    }
}

#[tokio::test]
async fn without_dependencies_there_is_the_standard_library_and_nothing_else() {
    let lab = Lab::new(Namespaces);
    let log = lab
        .output(
            "import sys, sqlite3, ssl\nprint([p for p in sys.path if 'site-packages' in p or 'dist-packages' in p])\n",
        )
        .await;
    assert_eq!(log, "[]\n");
}

#[tokio::test]
async fn metadata_that_cannot_be_read_fails_the_preparation() {
    let lab = Lab::new(Namespaces);
    let (end, log) = lab
        .run(&spec(
            "# /// script\n# dependencies = [\n# ///\nprint('never')\n",
        ))
        .await;
    assert!(
        end.error_tail
            .starts_with("line 2, column 19: the script block cannot be used: "),
        "{end:?}"
    );
    assert_eq!(log, "");
}

#[tokio::test]
async fn a_script_for_another_python_is_not_started() {
    let lab = Lab::new(Namespaces);
    let (end, log) = lab
        .run(&spec(
            "# /// script\n# requires-python = \">=3.99\"\n# ///\nprint('never')\n",
        ))
        .await;
    assert_eq!(end.reason, EndReason::PreparationFailed);
    assert!(end.error_tail.contains(">=3.99"), "{end:?}");
    assert_eq!(log, "");
}

#[tokio::test]
async fn a_server_without_python_refuses_and_says_what_to_do() {
    let data = tempfile::tempdir().unwrap();
    let runner = runner(Settings {
        python: Some("/nowhere/python3".into()),
        ..settings(data.path(), Namespaces)
    });
    let spec = spec("print('never')\n");
    let refused = runner.submit(&spec).await.unwrap_err();
    let RunnerError::Refused(reason) = refused else {
        panic!("{refused:?}");
    };
    assert!(
        reason.contains("no Python") && reason.contains("LABDATA_PYTHON"),
        "{reason}"
    );
    assert!(runner.status(spec.run).await.unwrap().end().is_some());
}

#[tokio::test]
async fn without_uv_only_scripts_that_declare_something_fail_and_say_why() {
    let data = tempfile::tempdir().unwrap();
    let runner = runner(Settings {
        uv: Some("/nowhere/uv".into()),
        ..settings(data.path(), Namespaces)
    });
    let declaring = spec("# /// script\n# dependencies = [\"six\"]\n# ///\nprint('never')\n");
    runner.submit(&declaring).await.unwrap();
    let end = end_of(&runner, declaring.run).await;
    assert_eq!(end.reason, EndReason::PreparationFailed);
    assert!(end.error_tail.contains("/nowhere/uv"), "{end:?}");
    let plain = spec("print('done')\n");
    runner.submit(&plain).await.unwrap();
    assert!(end_of(&runner, plain.run).await.succeeded());
}

/// Environment variable of the process that installs a hoarder: the level of isolation.
const HOARDS: &str = "LABDATA_TEST_HOARDS";

/// Build backend of a package whose build fills the cache.
const HOARDER: &str = r#"
import os, time
def build_wheel(directory, config_settings=None, metadata_directory=None):
    for number in range(100):
        with open(os.path.join(os.environ["UV_CACHE_DIR"], str(number)), "wb") as file:
            file.write(bytes([1]) * (1 << 20))
    time.sleep(600)
"#;

/// Installs in the child process; not a test.
#[tokio::test]
async fn an_installation_that_hoards() {
    let Ok(level) = std::env::var(HOARDS) else {
        return;
    };
    let isolation = isolation_of(&level);
    let data = open_directory();
    let lab_runner = runner(Settings {
        cache_quota: 64 << 20,
        ..settings(data.path(), isolation)
    });
    let run = spec("# /// script\n# dependencies = [\"hoarder==1.0\"]\n# ///\nprint('ran')\n");
    lab_runner.submit(&run).await.unwrap();
    let end = end_of(&lab_runner, run.run).await;
    assert_eq!(end.reason, EndReason::PreparationFailed, "{end:?}");
    assert!(
        end.error_tail.contains("LABDATA_JOB_CACHE_QUOTA"),
        "{end:?}"
    );
    // The next installation or the periodic task makes room.
    lab_runner.reap(run.run).await.unwrap();
    lab_runner.trim_caches().await.unwrap();
    let cache = data
        .path()
        .join(format!("jobs/cache/{}/uv", run.organization));
    assert!(!cache.exists());
    println!("the hoarder was ended");
}

#[test]
fn a_build_script_that_fills_the_cache_is_ended() {
    let place = open_directory();
    write_package(place.path(), "hoarder", HOARDER);
    for level in ["Namespaces", "Landlock", "Nothing"] {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "dependencies::an_installation_that_hoards"])
            .arg("--nocapture")
            .env(HOARDS, level)
            .env("UV_OFFLINE", "1")
            .env("UV_FIND_LINKS", place.path())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            text.contains("the hoarder was ended"),
            "{level}: {text}\n{errors}"
        );
    }
}

/// Environment variable of the process that installs the Python client: the level of isolation.
const INSTALLS_CLIENT: &str = "LABDATA_TEST_INSTALLS_CLIENT";

/// Scripts that need the Python client themselves, and through another package.
const CLIENT_BLOCKS: [&str; 2] = [
    "# /// script\n# dependencies = [\"labdata_client\"]\n# ///\n",
    "# /// script\n# dependencies = [\"needs-client\"]\n# ///\n",
];

/// Prints the version of the client, which has its dependencies.
const CLIENT_SCRIPT: &str = "import httpx, importlib.metadata, labdata_client\n\
print(importlib.metadata.version('labdata-client'), labdata_client.connect.__name__)\n";

/// Installs in the child process; not a test.
#[tokio::test]
async fn an_installation_of_the_client() {
    let Ok(level) = std::env::var(INSTALLS_CLIENT) else {
        return;
    };
    let data = open_directory();
    let runner = runner(settings(data.path(), isolation_of(&level)));
    for block in CLIENT_BLOCKS {
        let run = spec(&format!("{block}{CLIENT_SCRIPT}"));
        runner.submit(&run).await.unwrap();
        let end = end_of(&runner, run.run).await;
        let log = log_from(&runner, run.run, 0).await;
        assert!(end.succeeded(), "{end:?} {log}");
        assert!(log.ends_with("0.1.0 connect\n"), "{log}");
    }
    println!("installed the client");
}

#[test]
fn a_package_of_the_clients_name_on_an_index_is_not_installed() {
    let place = open_directory();
    write_wheel(place.path(), "labdata-client", &[]);
    write_wheel(place.path(), "needs-client", &["labdata-client"]);
    for level in ["Namespaces", "Landlock", "Nothing"] {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "dependencies::an_installation_of_the_client"])
            .arg("--nocapture")
            .env(INSTALLS_CLIENT, level)
            .env("UV_FIND_LINKS", place.path())
            .env("UV_INDEX_STRATEGY", "unsafe-best-match")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            text.contains("installed the client"),
            "{level}: {text}\n{errors}"
        );
    }
}
