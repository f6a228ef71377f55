//! The clock of one machine, which a process believes and a test steps.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use crate::process::directory;

/// Compiles the library that moves the time of day; the directory has to outlive its processes.
pub(super) fn library() -> (PathBuf, TempDir) {
    let directory = directory();
    let library = directory.path().join("clock.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/cluster/clock.c");
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-O2", "-o"])
        .args([&library, &source])
        .status();
    assert!(compiled.unwrap().success(), "cc compiles clock.c");
    (library, directory)
}

/// A clock, right at first.
pub(super) struct Clock {
    step: File,
    environment: Vec<(String, String)>,
}

impl Clock {
    /// Creates the clock of that name, with the library in that directory.
    pub(super) fn new(library: &Path, name: &str) -> Self {
        let path = library.with_file_name(name);
        fs::write(&path, 0_i64.to_ne_bytes()).unwrap();
        let step = File::options().write(true).open(&path).unwrap();
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let environment = vec![
            ("LD_PRELOAD".to_owned(), text(library)),
            ("CLOCK_STEP_FILE".to_owned(), text(&path)),
        ];
        Self { step, environment }
    }

    /// Variables of a process that believes this clock.
    pub(super) fn environment(&self) -> &[(String, String)] {
        &self.environment
    }

    /// Makes it differ from the right time by that number of seconds.
    pub(super) fn step(&self, seconds: i64) {
        self.step.write_all_at(&seconds.to_ne_bytes(), 0).unwrap();
    }
}
