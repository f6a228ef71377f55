//! Packages that tests install in a child process, whose environment they choose.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use labdata_sandbox::Isolation;
use tempfile::TempDir;

/// Writes the source of a package: the archive, its name, and its build backend are arguments.
const WRITE: &str = r#"
import io, sys, tarfile
archive, name, backend = sys.argv[1:]
project = f"""
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "{name}"
version = "1.0"
"""
metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
with tarfile.open(archive, "w:gz") as package:
    for file, text in [("backend.py", backend), ("pyproject.toml", project), ("PKG-INFO", metadata)]:
        entry = tarfile.TarInfo(f"{name}-1.0/{file}")
        entry.size = len(text)
        package.addfile(entry, io.BytesIO(text.encode()))
"#;

/// Writes version 1.0 of a package and returns its archive.
pub(crate) fn write_package(directory: &Path, name: &str, backend: &str) -> PathBuf {
    let archive = directory.join(format!("{name}-1.0.tar.gz"));
    let mut python = Command::new("python3");
    python
        .args(["-c", WRITE])
        .arg(&archive)
        .args([name, backend]);
    assert!(python.status().unwrap().success());
    archive
}

/// Writes version 99.0 of a pure package whose module is empty: the directory, the name, and the packages
/// that it requires are arguments.
const WRITE_WHEEL: &str = r#"
import sys, zipfile
directory, name, *requires = sys.argv[1:]
module = name.replace("-", "_")
info = f"{module}-99.0.dist-info"
with zipfile.ZipFile(f"{directory}/{module}-99.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr(f"{module}.py", "")
    required = "".join(f"Requires-Dist: {it}\n" for it in requires)
    wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 99.0\n{required}")
    wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(f"{info}/RECORD", "")
"#;

/// Writes the wheel of version 99.0 of a package.
pub(crate) fn write_wheel(directory: &Path, name: &str, requires: &[&str]) {
    let mut python = Command::new("python3");
    python
        .args(["-c", WRITE_WHEEL])
        .arg(directory)
        .arg(name)
        .args(requires);
    assert!(python.status().unwrap().success());
}

/// Returns a temporary directory that every account may enter.
pub(crate) fn open_directory() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    directory
}

/// Returns the level of isolation that a child process was given by its name.
pub(crate) fn isolation_of(level: &str) -> Isolation {
    [
        Isolation::Namespaces,
        Isolation::Landlock,
        Isolation::Nothing,
    ]
    .into_iter()
    .find(|isolation| format!("{isolation:?}") == level)
    .unwrap()
}
