//! What a script declares inline (PEP 723), and how it gets that.

use std::fmt::Write as _;

use serde::Deserialize;
use sha2::{Digest, Sha256};

/// What a preparation is given of the server's environment: where packages are and how to get
/// there. The build scripts of packages can read it, too.
pub const PASSED_TO_PREPARATION: [&str; 18] = [
    "UV_DEFAULT_INDEX",
    "UV_INDEX",
    "UV_INDEX_URL",
    "UV_EXTRA_INDEX_URL",
    "UV_INDEX_STRATEGY",
    "UV_FIND_LINKS",
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

/// What of the block concerns its installation.
#[derive(Debug, Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    dependencies: Vec<String>,
}

/// The name under which the environment for this script is kept: the same for all scripts with
/// the same block. None when it has no dependencies.
pub(crate) fn environment_of(script: &str) -> Result<Option<String>, String> {
    let Some(block) = block(script) else {
        return Ok(None);
    };
    let metadata: Metadata = toml::from_str(&block)
        .map_err(|error| format!("the script's metadata (PEP 723) cannot be read: {error}"))?;
    if metadata.dependencies.is_empty() {
        return Ok(None);
    }
    let digest = Sha256::digest(block.as_bytes());
    let name = digest
        .iter()
        .take(16)
        .fold(String::new(), |mut name, byte| {
            // Writing to a string cannot fail.
            let _ = write!(name, "{byte:02x}");
            name
        });
    Ok(Some(name))
}

/// The text of the `script` block, without its comment signs.
fn block(script: &str) -> Option<String> {
    let mut lines = script
        .lines()
        .skip_while(|line| line.trim_end() != "# /// script");
    lines.next()?;
    let mut text = String::new();
    let mut closed = None;
    // The block ends with the last such line before something that is no comment.
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

    const DECLARED: &str = "# /// script\n# requires-python = \">=3.11\"\n# dependencies = [\n\
                            #   \"httpx\",\n# ]\n# ///\nprint(1)\n";

    #[test]
    fn scripts_with_the_same_block_share_an_environment() {
        let one = environment_of(DECLARED).unwrap().unwrap();
        let other = environment_of(&format!("import os\n{DECLARED}\nprint(2)")).unwrap();
        assert_eq!(other.as_deref(), Some(&*one));
        let third = environment_of(&DECLARED.replace("httpx", "polars")).unwrap();
        assert_ne!(third.as_deref(), Some(&*one));
        assert_eq!(one.len(), 32);
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
            assert_eq!(environment_of(script), Ok(None), "{script:?}");
        }
    }

    #[test]
    fn a_block_that_is_no_toml_is_refused() {
        let reason = environment_of("# /// script\n# dependencies = [\n# ///\n").unwrap_err();
        assert!(reason.contains("PEP 723"), "{reason}");
    }
}
