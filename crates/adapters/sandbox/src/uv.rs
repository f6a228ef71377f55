//! uv, which installs dependencies: an installed one, or a pinned one that is fetched.

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::python::Python;

/// Pinned release of uv on `PyPI`.
const VERSION: &str = "0.13.8";

/// Default package index, if neither `UV_DEFAULT_INDEX` nor `PIP_INDEX_URL` is set.
const INDEX: &str = "https://pypi.org/simple";

/// Operating system, processor, file name after the version, SHA-256 as `PyPI` lists it.
const WHEELS: [(&str, &str, &str, &str); 4] = [
    (
        "linux",
        "x86_64",
        "py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
        "e18a57b8b352eb7c8feb317b9f6f533c8f0ad9673fd6cf34bbe3cf1a9f6a8984",
    ),
    (
        "linux",
        "aarch64",
        "py3-none-manylinux_2_28_aarch64.whl",
        "5337c30bb893b4f9ce0ceb921ba2da0d13f649da644f40ad3bef84083bef0203",
    ),
    (
        "macos",
        "x86_64",
        "py3-none-macosx_10_12_x86_64.whl",
        "b7124ca1956ec2e476a1003ea5715a15f0266afaec37f4dc9c6972ba8183e6d1",
    ),
    (
        "macos",
        "aarch64",
        "py3-none-macosx_11_0_arm64.whl",
        "62b6943c7fd64fac6854f780bea6e0359e5a5bc3241f83ee357bb38276afac49",
    ),
];

/// Returns the named uv, that of the path, or the pinned one, which is fetched if missing. Blocks.
pub(crate) fn find(named: Option<&Path>, tools: &Path, python: &Python) -> Result<PathBuf, String> {
    if let Some(named) = named {
        return runs(named)
            .then(|| named.to_owned())
            .ok_or_else(|| format!("{} is no uv that runs", named.display()));
    }
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&on_path)
        .map(|directory| directory.join("uv"))
        .find(|candidate| candidate.is_absolute() && runs(candidate));
    match found {
        Some(found) => Ok(found.canonicalize().unwrap_or(found)),
        None => fetch(tools, python),
    }
}

/// Checks for a uv binary. Scripts of version managers are rejected: they do not run in the sandbox.
fn runs(candidate: &Path) -> bool {
    let mut start = [0; 2];
    let is_script = fs::File::open(candidate)
        .and_then(|mut file| file.read_exact(&mut start))
        .map_or(true, |()| start == *b"#!");
    !is_script
        && Command::new(candidate)
            .arg("--version")
            .stdin(Stdio::null())
            .output()
            .is_ok_and(|output| output.status.success() && output.stdout.starts_with(b"uv "))
}

fn fetch(tools: &Path, python: &Python) -> Result<PathBuf, String> {
    let program = tools.join(format!("uv-{VERSION}"));
    if program.is_file() {
        return Ok(program);
    }
    let index = ["UV_DEFAULT_INDEX", "PIP_INDEX_URL"]
        .iter()
        .find_map(|name| std::env::var(name).ok())
        .unwrap_or_else(|| INDEX.to_owned());
    fetch_from(&index, &program, python).map_err(|reason| {
        format!(
            "uv is not installed and cannot be fetched: {reason}; install uv, or name one with \
             LABDATA_UV"
        )
    })?;
    Ok(program)
}

fn fetch_from(index: &str, program: &Path, python: &Python) -> Result<(), String> {
    let (.., tag, sha256) = WHEELS
        .iter()
        .find(|(os, arch, ..)| *os == std::env::consts::OS && *arch == std::env::consts::ARCH)
        .ok_or_else(|| "there is no pinned wheel for this machine".to_owned())?;
    tracing::info!(version = VERSION, "no uv is installed: fetching one, once");
    let directory = program.parent().unwrap_or(Path::new("/"));
    let stage = tempfile::tempdir_in(directory).map_err(|error| error.to_string())?;
    let staged = stage.path().join("uv");
    let output = Command::new(&python.program)
        .args(["-I", "-c", include_str!("fetch_uv.py"), index])
        .arg(format!("uv-{VERSION}-{tag}"))
        .arg(sha256)
        .arg(&staged)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(text.lines().next_back().unwrap_or("no reason").to_owned());
    }
    // A concurrent fetch writes the same file.
    fs::rename(&staged, program).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pinned_hash_is_a_sha256() {
        for (os, arch, tag, sha256) in WHEELS {
            assert!(tag.starts_with("py3-none-"), "{os} {arch}");
            assert!(sha256.len() == 64 && sha256.bytes().all(|byte| byte.is_ascii_hexdigit()));
        }
    }

    #[test]
    fn an_index_that_cannot_be_reached_is_named_and_nothing_is_left() {
        let python = Python::find(None).unwrap();
        let tools = tempfile::tempdir().unwrap();
        let program = tools.path().join("uv");
        // Nothing listens on the port of a listener that was closed.
        let port = std::net::TcpListener::bind(("127.0.0.1", 0))
            .and_then(|listener| listener.local_addr())
            .unwrap()
            .port();
        let index = format!("http://127.0.0.1:{port}/simple");
        let reason = fetch_from(&index, &program, &python).unwrap_err();
        assert!(reason.contains(&index), "{reason}");
        assert_eq!(fs::read_dir(tools.path()).unwrap().count(), 0);
    }
}
