//! Python that runs scripts.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use pep440_rs::Version;
use serde::Deserialize;

/// Prints the facts about a Python. In a virtual environment they are those of its base Python.
const PROBE: &str = "import json, sys
print(json.dumps({
    'program': getattr(sys, '_base_executable', None) or sys.executable,
    'prefixes': [sys.base_prefix, sys.base_exec_prefix],
    'version': list(sys.version_info[:3]),
}))";

/// Installed Python.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Python {
    /// Path of the base program, outside of any virtual environment.
    pub(crate) program: PathBuf,
    /// Directories of its libraries.
    pub(crate) prefixes: Vec<PathBuf>,
    version: (u32, u32, u32),
    /// Program as it was found, with the pip that people use.
    #[serde(skip)]
    pub(crate) invoked: PathBuf,
}

impl Python {
    /// Returns the named Python, or that of the path. Blocks.
    ///
    /// # Errors
    /// The reason why none is usable, with what to install.
    pub fn find(named: Option<&Path>) -> Result<Self, String> {
        if let Some(named) = named {
            return Self::probe(named)
                .map_err(|reason| format!("{reason}; LABDATA_PYTHON names that one"));
        }
        // The `python3` of a version manager fails where no version is selected.
        Self::probe(Path::new("python3")).or_else(|reason| {
            Self::probe(Path::new("/usr/bin/python3"))
                .map_err(|_| format!("{reason}; install Python 3, or name one with LABDATA_PYTHON"))
        })
    }

    /// Returns a Python of the path or of the system that satisfies a condition. Blocks.
    pub(crate) fn find_that(is_usable: impl Fn(&Self) -> bool) -> Option<Self> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let system = ["/usr/local/bin", "/usr/bin"].map(PathBuf::from);
        let directories: Vec<PathBuf> = std::env::split_paths(&path).chain(system).collect();
        // Those that training takes come before older ones.
        let names = ["python3", "python3.13", "python3.12", "python3.11"];
        names
            .into_iter()
            .flat_map(|name| {
                directories
                    .iter()
                    .map(move |directory| directory.join(name))
            })
            // A relative entry is below the working directory, where anyone may have put one.
            .filter(|program| program.is_absolute() && program.is_file())
            .filter_map(|program| Self::probe(&program).ok())
            .find(is_usable)
    }

    fn probe(program: &Path) -> Result<Self, String> {
        let output = Command::new(program)
            .args(["-I", "-c", PROBE])
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("`{}` does not run: {error}", program.display()))?;
        if !output.status.success() {
            return Err(format!(
                "`{}` does not work: {}",
                program.display(),
                String::from_utf8_lossy(&output.stderr).trim()
            ));
        }
        let mut python: Self = serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("`{}` is no Python: {error}", program.display()))?;
        if python.version < (3, 9, 0) {
            return Err(format!("`{}` is older than Python 3.9", program.display()));
        }
        program.clone_into(&mut python.invoked);
        Ok(python)
    }

    /// Returns the path of the program.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Returns the version.
    #[must_use]
    pub fn version(&self) -> Version {
        let (major, minor, patch) = self.version;
        Version::new([major, minor, patch].map(u64::from))
    }

    /// Returns the paths that must be readable for it to run.
    pub(crate) fn required_paths(&self) -> Vec<PathBuf> {
        let mut required = self.prefixes.clone();
        // A symbolic link may lead out of the prefix.
        if let Ok(target) = self.program.canonicalize()
            && !required.iter().any(|prefix| target.starts_with(prefix))
        {
            required.push(target);
        }
        if !required.iter().any(|path| self.program.starts_with(path)) {
            required.push(self.program.clone());
        }
        required.dedup();
        required
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_python_of_the_path_is_found_with_its_libraries() {
        let python = Python::find(None).unwrap();
        assert!(python.program.is_absolute());
        assert!(!python.required_paths().is_empty());
    }

    #[test]
    fn a_program_that_is_no_python_is_named() {
        let reason = Python::find(Some(Path::new("/bin/true"))).unwrap_err();
        assert!(reason.contains("/bin/true"), "{reason}");
        let reason = Python::find(Some(Path::new("/nowhere/python3"))).unwrap_err();
        assert!(reason.contains("/nowhere/python3"), "{reason}");
    }
}
