//! The tests of the program itself, in an environment of its packages: every value of the files that are there.

use std::process::Command;

use labdata_file_readers::REQUIREMENTS;
use labdata_sandbox::{Python, Uv};

use crate::support::{data, repository};

#[test]
fn the_program_passes_its_tests() {
    let environments = data().with_file_name("file-readers-python");
    let python = Python::find(None).unwrap();
    let uv = Uv::find(None, &environments.with_file_name("tools"), &python).unwrap();
    let environment = environments.join("venv");
    uv.create_environment(&environment, REQUIREMENTS).unwrap();
    let tests = Command::new(environment.join("bin/python"))
        .args(["-m", "unittest", "discover", "--start-directory", "tests"])
        .args(["--top-level-directory", "."])
        .current_dir(repository().join("crates/adapters/file-readers/reader"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let report = String::from_utf8_lossy(&tests.stderr);
    println!("{report}");
    assert!(tests.status.success(), "{report}");
    assert!(report.contains("OK"), "{report}");
}
