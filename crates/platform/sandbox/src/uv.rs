//! uv, which makes Python environments: an installed one, or a pinned one that is downloaded.

use std::{
    fs::{self, File, Permissions},
    io::{self, Read},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use labdata_python_packages::{Build, PinnedWheel};

use crate::{package_index, python::Python};

/// Pinned release.
const WHEEL: PinnedWheel = PinnedWheel {
    project: "uv",
    version: "0.13.8",
    builds: &[
        // manylinux_2_17
        Build {
            os: "linux",
            arch: "x86_64",
            sha256: "e18a57b8b352eb7c8feb317b9f6f533c8f0ad9673fd6cf34bbe3cf1a9f6a8984",
        },
        // manylinux_2_28
        Build {
            os: "linux",
            arch: "aarch64",
            sha256: "5337c30bb893b4f9ce0ceb921ba2da0d13f649da644f40ad3bef84083bef0203",
        },
        // macosx_10_12
        Build {
            os: "macos",
            arch: "x86_64",
            sha256: "b7124ca1956ec2e476a1003ea5715a15f0266afaec37f4dc9c6972ba8183e6d1",
        },
        // macosx_11_0
        Build {
            os: "macos",
            arch: "aarch64",
            sha256: "62b6943c7fd64fac6854f780bea6e0359e5a5bc3241f83ee357bb38276afac49",
        },
    ],
};

/// uv, with the package index to use.
#[derive(Clone, Debug)]
pub struct Uv {
    /// Path of the program.
    pub(crate) program: PathBuf,
    /// Environment variables that name the package index, as pip is configured.
    index: Vec<(String, String)>,
    python: PathBuf,
}

impl Uv {
    /// Returns the named uv, that of the path, or the pinned one, which is downloaded into `tools` if
    /// it is missing. The package index is that of pip. Blocks; several processes may call it at once.
    ///
    /// # Errors
    /// The reason why there is no uv, with what to install.
    pub fn find(named: Option<&Path>, tools: &Path, python: &Python) -> Result<Self, String> {
        Self::find_that(named, tools, python, |_| true)
    }

    /// Like [`Uv::find`], for those that satisfy a condition, such as that an account can run them.
    pub(crate) fn find_that(
        named: Option<&Path>,
        tools: &Path,
        python: &Python,
        is_usable: impl Fn(&Path) -> bool,
    ) -> Result<Self, String> {
        Ok(Self {
            program: program(named, tools, python, is_usable)?,
            index: package_index::variables(&python.invoked),
            python: python.program.clone(),
        })
    }

    /// Returns the environment variables that name the package index, unless this process's own
    /// environment does.
    #[must_use]
    pub fn index(&self) -> &[(String, String)] {
        &self.index
    }

    /// Returns the path of the program.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Creates a virtual environment with exactly the packages that `requirements` pins by version
    /// and hash, in pip's format. Does nothing if the directory already contains it. uv's cache is
    /// placed beside the directory. Blocks; several processes may call it at once.
    ///
    /// # Errors
    /// The reason, for operators.
    pub fn create_environment(&self, directory: &Path, requirements: &str) -> Result<(), String> {
        let failed = |error: io::Error| format!("{}: {error}", directory.display());
        let parent = directory.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(parent).map_err(failed)?;
        let lock = File::create(directory.with_extension("lock")).map_err(failed)?;
        // Test programs run side by side and share the environment.
        lock.lock().map_err(failed)?;
        // Written last: its content means that the environment is complete.
        let installed = directory.join("requirements.txt");
        if fs::read_to_string(&installed).is_ok_and(|installed| installed == requirements) {
            return Ok(());
        }
        let pending = directory.with_extension("requirements.txt");
        fs::write(&pending, requirements).map_err(failed)?;
        let cache = parent.join("uv-cache");
        let uv = || {
            let mut command = Command::new(&self.program);
            command
                .env("UV_CACHE_DIR", &cache)
                .env("UV_PYTHON_DOWNLOADS", "never")
                // An active environment of the developer would be changed instead.
                .env_remove("VIRTUAL_ENV")
                .envs(self.index.iter().map(|(name, value)| (name, value)))
                .stdin(Stdio::null());
            command
        };
        let mut create = uv();
        create
            .args(["venv", "--quiet", "--clear", "--no-project", "--python"])
            .arg(&self.python)
            .arg(directory);
        run(&mut create)?;
        let mut install = uv();
        install
            .args([
                "pip",
                "sync",
                "--quiet",
                "--require-hashes",
                "--only-binary",
            ])
            .args([":all:", "--python"])
            .arg(directory.join("bin/python"))
            .arg(&pending);
        run(&mut install)?;
        fs::rename(&pending, &installed).map_err(failed)
    }
}

fn run(uv: &mut Command) -> Result<(), String> {
    let output = uv.output().map_err(|error| format!("uv: {error}"))?;
    if output.status.success() {
        Ok(())
    } else {
        let text = String::from_utf8_lossy(&output.stderr);
        Err(format!("uv: {} ({})", text.trim(), output.status))
    }
}

fn program(
    named: Option<&Path>,
    tools: &Path,
    python: &Python,
    is_usable: impl Fn(&Path) -> bool,
) -> Result<PathBuf, String> {
    if let Some(named) = named {
        return (is_uv(named) && is_usable(named))
            .then(|| named.to_owned())
            .ok_or_else(|| format!("{} is no uv that runs for scripts", named.display()));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .map(|directory| directory.join("uv"))
        // A relative entry of the path is below the working directory, where anyone may have put a
        // uv.
        .find(|candidate| candidate.is_absolute() && is_usable(candidate) && is_uv(candidate));
    match found {
        // The sandbox permits paths, not links to them.
        Some(found) => Ok(found.canonicalize().unwrap_or(found)),
        None => fetch(tools, &python.invoked).map_err(|reason| {
            format!(
                "uv is not installed and cannot be downloaded: {reason}; install uv, or name one with \
                 LABDATA_UV"
            )
        }),
    }
}

/// Checks for a uv binary. Scripts of version managers are rejected: they do not run in the sandbox.
fn is_uv(candidate: &Path) -> bool {
    let mut start = [0; 2];
    // A wrapper script would need its interpreter inside the sandbox.
    let is_script = File::open(candidate)
        .and_then(|mut file| file.read_exact(&mut start))
        .map_or(true, |()| start == *b"#!");
    !is_script
        && Command::new(candidate)
            .arg("--version")
            .stdin(Stdio::null())
            .output()
            .is_ok_and(|output| output.status.success() && output.stdout.starts_with(b"uv "))
}

fn fetch(tools: &Path, python: &Path) -> Result<PathBuf, String> {
    let program = tools.join(format!("uv-{}", WHEEL.version));
    if program.is_file() {
        return Ok(program);
    }
    tracing::info!(
        version = WHEEL.version,
        "no uv is installed: downloading one, once"
    );
    let failed = |error: io::Error| format!("{}: {error}", tools.display());
    fs::create_dir_all(tools).map_err(failed)?;
    let stage = tempfile::tempdir_in(tools).map_err(failed)?;
    let contents = WHEEL
        .fetch(python, stage.path())
        .map_err(|error| error.to_string())?;
    let unpacked = contents.join(format!("uv-{}.data/scripts/uv", WHEEL.version));
    fs::set_permissions(&unpacked, Permissions::from_mode(0o755)).map_err(failed)?;
    // A concurrent download writes the same file.
    fs::rename(&unpacked, &program).map_err(failed)?;
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pinned_hash_is_a_sha256() {
        for Build { os, arch, sha256 } in WHEEL.builds {
            let is_sha256 = sha256.len() == 64 && sha256.bytes().all(|it| it.is_ascii_hexdigit());
            assert!(is_sha256, "{os} {arch}");
        }
    }

    #[test]
    fn a_failed_download_names_its_reason_and_leaves_nothing() {
        let tools = tempfile::tempdir().unwrap();
        let reason = fetch(tools.path(), Path::new("/nowhere/python3")).unwrap_err();
        assert!(reason.contains("/nowhere/python3"), "{reason}");
        assert_eq!(fs::read_dir(tools.path()).unwrap().count(), 0);
    }
}
