//! The Python that runs scripts.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use pep440_rs::Version;
use serde::Deserialize;

/// Tells of a Python what has to be known of it. In a virtual environment it tells of the Python
/// that the environment was made from.
const ASK: &str = "import json, sys
print(json.dumps({
    'program': getattr(sys, '_base_executable', None) or sys.executable,
    'prefixes': [sys.base_prefix, sys.base_exec_prefix],
    'version': list(sys.version_info[:3]),
}))";

/// A Python.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Python {
    /// The program.
    pub(crate) program: PathBuf,
    /// The directories that its libraries are in.
    pub(crate) prefixes: Vec<PathBuf>,
    version: (u32, u32, u32),
}

impl Python {
    /// The named one, or that of the path. Blocks.
    pub(crate) fn find(named: Option<&Path>) -> Result<Self, String> {
        if let Some(named) = named {
            return Self::ask(named)
                .map_err(|reason| format!("{reason}; LABDATA_PYTHON names that one"));
        }
        // A version manager's `python3` may be one that knows no version here.
        Self::ask(Path::new("python3")).or_else(|reason| {
            Self::ask(Path::new("/usr/bin/python3"))
                .map_err(|_| format!("{reason}; install Python 3, or name one with LABDATA_PYTHON"))
        })
    }

    fn ask(program: &Path) -> Result<Self, String> {
        let output = Command::new(program)
            .args(["-I", "-c", ASK])
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
        let python: Self = serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("`{}` is no Python: {error}", program.display()))?;
        if python.version < (3, 9, 0) {
            return Err(format!("`{}` is older than Python 3.9", program.display()));
        }
        Ok(python)
    }

    /// Its version.
    pub(crate) fn version(&self) -> Version {
        let (major, minor, patch) = self.version;
        Version::new([major, minor, patch].map(u64::from))
    }

    /// What has to be readable for it to run.
    pub(crate) fn needs(&self) -> Vec<PathBuf> {
        let mut needed = self.prefixes.clone();
        // A link may lead out of the prefix.
        if let Ok(target) = self.program.canonicalize()
            && !needed.iter().any(|prefix| target.starts_with(prefix))
        {
            needed.push(target);
        }
        if !needed.iter().any(|path| self.program.starts_with(path)) {
            needed.push(self.program.clone());
        }
        needed.dedup();
        needed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_python_of_the_path_is_found_with_its_libraries() {
        let python = Python::find(None).unwrap();
        assert!(python.program.is_absolute());
        assert!(!python.needs().is_empty());
    }

    #[test]
    fn what_is_no_python_is_named() {
        let reason = Python::find(Some(Path::new("/bin/true"))).unwrap_err();
        assert!(reason.contains("/bin/true"), "{reason}");
        let reason = Python::find(Some(Path::new("/nowhere/python3"))).unwrap_err();
        assert!(reason.contains("/nowhere/python3"), "{reason}");
    }
}
