//! Environments that scripts share, by their inline metadata (PEP 723).

use std::os::unix::ffi::OsStrExt;

use labdata_python_packages::{CLIENT_WHEEL, DeclaredPackages};
use pep440_rs::{Version, VersionSpecifiers};
use sha2::{Digest, Sha256};

use crate::python::Python;

/// Environment variables that an installation inherits: package index, proxy and certificates. Build
/// scripts of packages can read them, without credentials.
pub const INSTALL_VARIABLES: [&str; 19] = [
    "UV_DEFAULT_INDEX",
    "UV_INDEX",
    "UV_INDEX_URL",
    "UV_EXTRA_INDEX_URL",
    "UV_INDEX_STRATEGY",
    "UV_FIND_LINKS",
    "UV_INSECURE_HOST",
    "UV_OFFLINE",
    "UV_HTTP_TIMEOUT",
    "UV_SYSTEM_CERTS",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// Returns the name of the script's environment, which is the same for all scripts with the same
/// block, client, completion and Python, or none if the script has no dependencies.
///
/// The error is for the script's author: the block excludes this Python.
pub(crate) fn environment_name(
    packages: &DeclaredPackages,
    completion: Option<&str>,
    python: &Python,
) -> Result<Option<String>, String> {
    check_python(&packages.requires_python, &python.version())?;
    if !packages.has_dependencies() {
        return Ok(None);
    }
    let mut digest = Sha256::new_with_prefix(packages.block.as_bytes());
    if packages.names_client() {
        digest.update([1]);
        digest.update(CLIENT_WHEEL.sha256);
    }
    if let Some(code) = completion {
        digest.update([0]);
        digest.update(code.as_bytes());
    }
    // Another Python, which other accounts can run, is used where the isolation needs one.
    digest.update([2]);
    digest.update(python.program().as_os_str().as_bytes());
    let mut name = base16ct::lower::encode_string(&digest.finalize());
    name.truncate(32);
    Ok(Some(name))
}

/// Checks that `requires-python` admits this version.
fn check_python(wanted: &VersionSpecifiers, python: &Version) -> Result<(), String> {
    if wanted.contains(python) {
        Ok(())
    } else {
        Err(format!(
            "the script requires Python {wanted}, but this server runs scripts with Python {python}: \
             change requires-python, or have the server's operator name another one with \
             LABDATA_PYTHON"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn python(program: &str) -> Python {
        let facts = serde_json::json!({
            "program": program,
            "prefixes": [],
            "version": [3, 11, 7],
        });
        serde_json::from_value(facts).unwrap()
    }

    fn declared(dependencies: &[&str], requires_python: &str) -> DeclaredPackages {
        DeclaredPackages {
            block: format!("dependencies = {dependencies:?}"),
            dependencies: dependencies.iter().map(|&it| it.to_owned()).collect(),
            requires_python: requires_python.parse().unwrap(),
        }
    }

    fn named(packages: &DeclaredPackages, completion: Option<&str>) -> String {
        let name = environment_name(packages, completion, &python("/usr/bin/python3"));
        name.unwrap().unwrap()
    }

    #[test]
    fn scripts_with_the_same_block_share_an_environment() {
        let httpx = declared(&["httpx"], ">=3.11");
        let one = named(&httpx, None);
        assert_eq!(one.len(), 32);
        assert_eq!(named(&httpx.clone(), None), one);
        assert_ne!(named(&declared(&["polars"], ">=3.11"), None), one);
        assert_ne!(named(&httpx, Some("1")), one);
        let other = environment_name(&httpx, None, &python("/opt/bin/python3"));
        assert_ne!(other.unwrap().unwrap(), one);
    }

    #[test]
    fn without_dependencies_there_is_none() {
        let name = environment_name(&declared(&[], ">=3.9"), None, &python("/usr/bin/python3"));
        assert_eq!(name, Ok(None));
    }

    #[test]
    fn a_script_says_which_python_it_needs() {
        let needs = |wanted: &str| {
            environment_name(&declared(&[], wanted), None, &python("/usr/bin/python3"))
        };
        for wanted in [
            "", ">=3.9", ">=3.11.7", "==3.11.*", "~=3.11", ">=3.9,<4", "!=3.12",
        ] {
            assert_eq!(needs(wanted), Ok(None), "{wanted}");
        }
        for wanted in [">=3.12", "<3.11", ">=3.11.8", "==3.10.*", "~=3.10.0"] {
            let reason = needs(wanted).unwrap_err();
            assert!(
                reason.contains(wanted) && reason.contains("3.11.7"),
                "{reason}"
            );
        }
    }
}
