//! Readers of files of instruments, in processes of this machine.

use std::{path::PathBuf, sync::Arc};

use labdata_file_readers::{FileReaderSettings, SandboxFileReader};
use labdata_ports::instruments::FileReader;

use super::backends::sandbox;
use crate::settings::Settings;

/// Creates the reader of files; `program` is the `labdata` binary.
#[must_use]
pub fn file_reader(settings: &Settings, program: PathBuf, public_url: &str) -> Arc<dyn FileReader> {
    Arc::new(SandboxFileReader::new(
        sandbox(settings, program, public_url),
        FileReaderSettings::default(),
    ))
}
