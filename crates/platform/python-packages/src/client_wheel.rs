//! Wheel of the Python client, built from `clients/python`.

/// Name of the client's package.
pub const CLIENT: &str = "labdata-client";

/// Wheel of the Python client.
#[derive(Clone, Copy, Debug)]
pub struct ClientWheel {
    /// File name, which tells installers name and version.
    pub file_name: &'static str,
    /// Content, not compressed.
    pub bytes: &'static [u8],
    /// SHA-256 of the content, in hexadecimal.
    pub sha256: &'static str,
}

/// The wheel that scripts install. Not a constant, of which each crate that uses it would hold a copy.
pub static CLIENT_WHEEL: ClientWheel = ClientWheel {
    file_name: env!("CLIENT_WHEEL_NAME"),
    bytes: include_bytes!(concat!(env!("OUT_DIR"), "/client.whl")),
    sha256: env!("CLIENT_WHEEL_SHA256"),
};

#[cfg(test)]
mod tests {
    use std::{
        fs,
        io::{Cursor, Read},
        path::Path,
    };

    use zip::ZipArchive;

    use super::*;

    fn file(path: &str) -> String {
        let mut archive = ZipArchive::new(Cursor::new(CLIENT_WHEEL.bytes)).unwrap();
        let mut text = String::new();
        let mut entry = archive.by_name(path).unwrap();
        entry.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn the_wheel_has_the_modules_of_the_tree() {
        let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../clients/python/src");
        for path in [
            "labdata_client/__init__.py",
            "labdata_client/_sync/_lab.py",
            "labdata_client/_async/_lab.py",
            "labdata_client/watch/__main__.py",
            "labdata_client/py.typed",
        ] {
            assert_eq!(file(path), fs::read_to_string(tree.join(path)).unwrap());
        }
        let archive = ZipArchive::new(Cursor::new(CLIENT_WHEEL.bytes)).unwrap();
        let names: Vec<String> = archive
            .file_names()
            .map(|name| name.unwrap().into_owned())
            .collect();
        assert!(names.iter().all(|it| !it.contains("__pycache__")));
        let record = file("labdata_client-0.1.0.dist-info/RECORD");
        assert_eq!(record.lines().count(), names.len());
    }

    #[test]
    fn the_wheel_names_the_dependencies_of_the_client() {
        let metadata = file("labdata_client-0.1.0.dist-info/METADATA");
        for line in [
            "Name: labdata-client",
            "Requires-Python: >=3.9",
            "Requires-Dist: httpx>=0.27,<1",
            "Provides-Extra: polars",
            "Requires-Dist: polars>=1; extra == 'polars'",
        ] {
            assert!(metadata.lines().any(|it| it == line), "{line}: {metadata}");
        }
        assert_eq!(
            file("labdata_client-0.1.0.dist-info/entry_points.txt"),
            "[console_scripts]\nlabdata-watch = labdata_client.watch.__main__:main\n"
        );
    }
}
