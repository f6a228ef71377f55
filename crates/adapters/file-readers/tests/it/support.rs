//! Readers for the tests.

use std::{
    ffi::OsString,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use labdata_domain::ids::OrganizationId;
use labdata_file_readers::{FileReaderSettings, SandboxFileReader};
use labdata_port_contracts::given;
use labdata_ports::instruments::ReadingRequest;
use labdata_sandbox::{Sandbox, Settings};

/// The repository's simulated export.
pub(crate) fn demo() -> Vec<u8> {
    fs::read(repository().join("docs/demo/simulated_growth_curves.txt")).unwrap()
}

/// A real export, where they are: they are no part of the repository.
pub(crate) fn real_file(name: &str) -> Option<Vec<u8>> {
    let directories = repository().ancestors();
    let mut paths = directories.map(|it| it.join("shared/data").join(name));
    paths.find_map(|path| fs::read(path).ok())
}

pub(crate) fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(3)
        .unwrap()
}

/// Data directory of all tests, so that the packages are installed once. Workspaces are each sandbox's.
pub(crate) fn data() -> &'static Path {
    static DATA: OnceLock<PathBuf> = OnceLock::new();
    DATA.get_or_init(|| {
        let data = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("file-readers");
        fs::create_dir_all(&data).unwrap();
        fs::set_permissions(&data, PermissionsExt::from_mode(0o755)).unwrap();
        data
    })
}

pub(crate) fn reader() -> SandboxFileReader {
    reader_with(FileReaderSettings::default())
}

pub(crate) fn reader_with(settings: FileReaderSettings) -> SandboxFileReader {
    let supervisor = OsString::from(env!("CARGO_BIN_EXE_labdata-reader-supervisor"));
    let sandbox = Sandbox::new(Settings::new(data().to_owned(), vec![supervisor]));
    let settings = FileReaderSettings {
        timeout: Duration::from_mins(10),
        ..settings
    };
    SandboxFileReader::new(Arc::new(sandbox), settings)
}

pub(crate) fn request(file_name: &str, content: Vec<u8>, reader: &str) -> ReadingRequest {
    ReadingRequest {
        organization: OrganizationId::new(given::uuid()),
        file_name: file_name.to_owned(),
        content: Bytes::from(content),
        reader: reader.to_owned(),
        preferred: None,
        timezone: Some("Europe/Berlin".to_owned()),
    }
}
