//! Dependencies that are really installed. These tests need a package index.

use labdata_local_runner::Isolation::{Landlock, Namespaces};
use labdata_port_contracts::runs::spec;
use labdata_ports::runner::JobRunner;

use crate::support::Lab;

const SCRIPT: &str = "# /// script\n# dependencies = [\"six==1.16.0\"]\n# ///\nimport six, sys\n\
print(six.__version__)\ntry:\n    open(six.__file__, 'a')\n    print('CAN write')\nexcept OSError:\n    pass\n";

async fn a_declared_dependency_is_there(lab: &Lab) {
    let first = spec(SCRIPT);
    let (end, log) = lab.run(&first).await;
    assert!(
        end.succeeded(),
        "this test installs a package from PyPI, or the index that UV_DEFAULT_INDEX names: {end:?}"
    );
    assert!(log.contains("1.16.0\n"), "{log}");
    assert!(!log.contains("CAN write"), "{log}");

    // Another run of the same organization needs no index any more, and no uv.
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
    assert!(end.error_tail.contains("PEP 723"), "{end:?}");
    assert_eq!(log, "");
}
