//! Package index of uv, taken from the configuration of pip.

use std::{
    collections::HashMap,
    path::Path,
    process::{Command, Stdio},
};

/// Program that prints the settings of pip.
const PROGRAM: &str = include_str!("pip_settings.py");

/// Certificates of the system, which the pip of a distribution trusts. By default uv trusts only those
/// that it contains.
const SYSTEM_CERTIFICATES: [&str; 3] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
];

/// Returns environment variables that configure uv like the pip of that Python. Variables that this
/// process's environment already contains are omitted: they take precedence. Blocks.
pub(crate) fn variables(python: &Path) -> Vec<(String, String)> {
    let is_set = |name: &str| std::env::var_os(name).is_some();
    let mut variables = translate(&settings(python).unwrap_or_default());
    let has_certificates = variables.iter().any(|(name, _)| *name == "SSL_CERT_FILE")
        || ["SSL_CERT_FILE", "SSL_CERT_DIR"].into_iter().any(is_set);
    if !has_certificates && SYSTEM_CERTIFICATES.iter().any(|it| Path::new(it).exists()) {
        variables.push(("UV_SYSTEM_CERTS", "1".to_owned()));
    }
    variables
        .into_iter()
        .filter(|(name, _)| !is_set(name))
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// Returns the settings of pip, or none if there is no pip.
fn settings(python: &Path) -> Option<HashMap<String, String>> {
    let output = Command::new(python)
        .args(["-c", PROGRAM])
        .current_dir("/")
        .stdin(Stdio::null())
        .output()
        .ok()?;
    serde_json::from_slice(&output.stdout).ok()
}

/// Translates settings of pip into variables of uv.
fn translate(settings: &HashMap<String, String>) -> Vec<(&'static str, String)> {
    let words = |name: &str| -> Vec<&str> {
        settings
            .get(name)
            .map(|value| value.split_whitespace().collect())
            .unwrap_or_default()
    };
    // uv fails on a directory that does not exist; pip skips it.
    let links: Vec<&str> = words("find-links")
        .into_iter()
        .filter(|link| link.contains("://") || Path::new(link).is_dir())
        .collect();
    let is_offline = settings
        .get("no-index")
        .is_some_and(|value| matches!(&*value.to_lowercase(), "1" | "true" | "yes" | "on"));
    let proxy = settings.get("proxy").cloned().unwrap_or_default();
    [
        ("UV_DEFAULT_INDEX", words("index-url").join(" ")),
        ("UV_INDEX", words("extra-index-url").join(" ")),
        ("UV_FIND_LINKS", links.join(",")),
        ("UV_INSECURE_HOST", words("trusted-host").join(" ")),
        ("UV_OFFLINE", if is_offline { "1" } else { "" }.to_owned()),
        ("SSL_CERT_FILE", words("cert").join(" ")),
        ("HTTPS_PROXY", proxy.clone()),
        ("HTTP_PROXY", proxy),
    ]
    .into_iter()
    .filter(|(_, value)| !value.is_empty())
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(settings: &[(&str, &str)]) -> Vec<(&'static str, String)> {
        let settings = settings
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        translate(&settings.collect())
    }

    #[test]
    fn uv_uses_the_index_the_proxy_and_the_certificates_of_pip() {
        let variables = translated(&[
            ("index-url", "http://mirror/simple"),
            ("extra-index-url", "\nhttp://one/simple\nhttp://two/simple"),
            ("trusted-host", "mirror"),
            ("cert", "/etc/ssl/lab.pem"),
            ("proxy", "http://proxy:3128"),
            ("timeout", "60"),
        ]);
        let expected = [
            ("UV_DEFAULT_INDEX", "http://mirror/simple"),
            ("UV_INDEX", "http://one/simple http://two/simple"),
            ("UV_INSECURE_HOST", "mirror"),
            ("SSL_CERT_FILE", "/etc/ssl/lab.pem"),
            ("HTTPS_PROXY", "http://proxy:3128"),
            ("HTTP_PROXY", "http://proxy:3128"),
        ];
        assert_eq!(
            variables,
            expected.map(|(name, value)| (name, value.to_owned()))
        );
    }

    #[test]
    fn only_existing_directories_of_wheels_are_searched() {
        let directory = tempfile::tempdir().unwrap();
        let existing = directory.path().to_str().unwrap();
        let links = format!("{existing} /nowhere/wheels https://lab/wheels");
        assert_eq!(
            translated(&[("find-links", &links), ("no-index", "true")]),
            [
                ("UV_FIND_LINKS", format!("{existing},https://lab/wheels")),
                ("UV_OFFLINE", "1".to_owned())
            ]
        );
    }

    #[test]
    fn the_settings_of_pip_are_read_from_a_configuration_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("pip.conf");
        std::fs::write(&file, "[global]\nindex-url = http://mirror/simple\n").unwrap();
        let output = Command::new("python3")
            .args(["-c", PROGRAM])
            .env("PIP_CONFIG_FILE", &file)
            .env_remove("PIP_INDEX_URL")
            .output()
            .unwrap();
        let settings: HashMap<String, String> = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(
            settings.get("index-url").map(|it| &**it),
            Some("http://mirror/simple")
        );
    }
}
