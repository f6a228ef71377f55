//! Runs the suite again as an ordinary user, if the tests run as root.

use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    process::Command,
};

use crate::support::SUPERVISOR;

/// User without any rights.
const NOBODY: u32 = 65534;

#[test]
fn everything_holds_for_an_ordinary_user() {
    if !nix::unistd::geteuid().is_root() {
        return; // The rest of the suite already runs as one.
    }
    // Accessible to every user, unlike the build directory.
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let copy = |program: &str, name: &str| {
        let target = place.path().join(name);
        fs::copy(program, &target).unwrap();
        fs::set_permissions(&target, PermissionsExt::from_mode(0o755)).unwrap();
        target
    };
    let own = std::env::current_exe().unwrap();
    let tests = copy(own.to_str().unwrap(), "tests");
    let supervisor = copy(env!("CARGO_BIN_EXE_labdata-run-supervisor"), "supervisor");
    let output = Command::new(tests)
        .args(["isolation::", "leftovers::", "limits::", "contracts::"])
        .args([
            "--skip",
            "dependencies_that_do_not_exist",
            "--test-threads=2",
        ])
        .env(SUPERVISOR, supervisor)
        .env("HOME", "/nonexistent")
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("test result: ok"),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
