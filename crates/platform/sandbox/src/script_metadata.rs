//! Environments that scripts share, by their inline metadata (PEP 723).

use std::str::FromStr;

use labdata_python_packages::{CLIENT_WHEEL, ScriptMetadata};
use pep440_rs::{Version, VersionSpecifiers};
use sha2::{Digest, Sha256};

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
/// block, client and completion, or none if the script has no dependencies.
///
/// The error is for the script's author: the block excludes this Python.
pub(crate) fn environment_name(
    metadata: &ScriptMetadata,
    completion: Option<&str>,
    python: &Version,
) -> Result<Option<String>, String> {
    check_python(metadata.requires_python(), python)?;
    if !metadata.has_dependencies() {
        return Ok(None);
    }
    let mut digest = Sha256::new_with_prefix(metadata.block().as_bytes());
    if metadata.names_client() {
        digest.update([1]);
        digest.update(CLIENT_WHEEL.sha256);
    }
    if let Some(code) = completion {
        digest.update([0]);
        digest.update(code.as_bytes());
    }
    let mut name = base16ct::lower::encode_string(&digest.finalize());
    name.truncate(32);
    Ok(Some(name))
}

/// Checks that `requires-python` admits this version.
fn check_python(wanted: &str, python: &Version) -> Result<(), String> {
    let admitted = VersionSpecifiers::from_str(wanted).map_err(|error| {
        format!("the script's requires-python (PEP 723) cannot be read: {wanted:?}: {error}")
    })?;
    if admitted.contains(python) {
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

    fn named(script: &str) -> Result<Option<String>, String> {
        completed(script, None)
    }

    fn completed(script: &str, completion: Option<&str>) -> Result<Option<String>, String> {
        let metadata = ScriptMetadata::read(script).unwrap().unwrap();
        environment_name(&metadata, completion, &Version::new([3, 11, 7]))
    }

    const DECLARED: &str = "# /// script\n# requires-python = \">=3.11\"\n# dependencies = [\n\
                            #   \"httpx\",\n# ]\n# ///\nprint(1)\n";

    #[test]
    fn scripts_with_the_same_block_share_an_environment() {
        let one = named(DECLARED).unwrap().unwrap();
        let other = named(&format!("import os\n{DECLARED}\nprint(2)")).unwrap();
        assert_eq!(other.as_deref(), Some(&*one));
        let third = named(&DECLARED.replace("httpx", "polars")).unwrap();
        assert_ne!(third.as_deref(), Some(&*one));
        assert_eq!(one.len(), 32);
        let completed = completed(DECLARED, Some("1"));
        assert_ne!(completed.unwrap().as_deref(), Some(&*one));
    }

    #[test]
    fn without_dependencies_there_is_none() {
        for script in [
            "# /// script\n# dependencies = []\n# ///\n",
            "# /// script\n# requires-python = \">=3.9\"\n# ///\n",
        ] {
            assert_eq!(named(script), Ok(None), "{script:?}");
        }
    }

    #[test]
    fn a_script_says_which_python_it_needs() {
        let needs = |wanted: &str| {
            named(&format!(
                "# /// script\n# requires-python = \"{wanted}\"\n# ///\n"
            ))
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
        let reason = needs("three").unwrap_err();
        assert!(reason.contains("requires-python"), "{reason}");
    }
}
