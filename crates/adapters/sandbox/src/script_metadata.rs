//! Inline metadata of scripts (PEP 723).

use std::{fmt::Write as _, str::FromStr};

use pep440_rs::{Version, VersionSpecifiers};
use serde::Deserialize;
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

/// Fields of the block that concern the installation.
#[derive(Debug, Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    dependencies: Vec<String>,
    #[serde(default, rename = "requires-python")]
    requires_python: String,
}

/// Returns the name of the script's environment, which is the same for all scripts with the same
/// block and completion, or none if the script has no dependencies.
///
/// The error is for the script's author: the block is invalid, or excludes this Python.
pub(crate) fn environment_name(
    script: &str,
    completion: Option<&str>,
    python: &Version,
) -> Result<Option<String>, String> {
    let Some(block) = block(script) else {
        return Ok(None);
    };
    let metadata: Metadata = toml::from_str(&block)
        .map_err(|error| format!("the script's metadata (PEP 723) cannot be read: {error}"))?;
    check_python(&metadata.requires_python, python)?;
    if metadata.dependencies.is_empty() {
        return Ok(None);
    }
    let mut digest = Sha256::new_with_prefix(block.as_bytes());
    if let Some(code) = completion {
        digest.update([0]);
        digest.update(code.as_bytes());
    }
    let name = digest
        .finalize()
        .iter()
        .take(16)
        .fold(String::new(), |mut name, byte| {
            // Writing to a string cannot fail.
            let _ = write!(name, "{byte:02x}");
            name
        });
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

/// Returns the text of the `script` block, without comment signs.
fn block(script: &str) -> Option<String> {
    let mut lines = script
        .lines()
        .skip_while(|line| line.trim_end() != "# /// script");
    lines.next()?;
    let mut text = String::new();
    let mut closed = None;
    // The block ends with the last closing line before the first line that is no comment.
    for line in lines {
        if line.trim_end() == "# ///" {
            closed = Some(text.len());
        }
        let content = line
            .strip_prefix("# ")
            .or_else(|| line.strip_prefix('#').filter(|rest| rest.is_empty()));
        let Some(content) = content else { break };
        text.push_str(content);
        text.push('\n');
    }
    text.truncate(closed?);
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(script: &str) -> Result<Option<String>, String> {
        environment_name(script, None, &Version::new([3, 11, 7]))
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
        let completed = environment_name(DECLARED, Some("1"), &Version::new([3, 11, 7]));
        assert_ne!(completed.unwrap().as_deref(), Some(&*one));
    }

    #[test]
    fn without_dependencies_there_is_none() {
        for script in [
            "",
            "print(1)",
            "# /// script\n# dependencies = []\n# ///\n",
            "# /// script\n# requires-python = \">=3.9\"\n# ///\n",
            "# /// other\n# dependencies = [\"httpx\"]\n# ///\n",
            "# /// script\n# dependencies = [\"httpx\"]\nprint(1)\n",
        ] {
            assert_eq!(named(script), Ok(None), "{script:?}");
        }
    }

    #[test]
    fn a_block_that_is_no_toml_is_refused() {
        let reason = named("# /// script\n# dependencies = [\n# ///\n").unwrap_err();
        assert!(reason.contains("PEP 723"), "{reason}");
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
