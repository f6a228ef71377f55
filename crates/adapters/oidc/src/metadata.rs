//! The provider's metadata (OpenID Connect Discovery 1.0).

use serde::Deserialize;
use url::{Host, Url};

/// The parts of the provider's document that are used.
#[derive(Clone, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) issuer: String,
    pub(crate) authorization_endpoint: String,
    pub(crate) token_endpoint: String,
    pub(crate) jwks_uri: String,
    pub(crate) userinfo_endpoint: Option<String>,
    #[serde(default)]
    pub(crate) token_endpoint_auth_methods_supported: Vec<String>,
    #[serde(default)]
    pub(crate) authorization_response_iss_parameter_supported: bool,
}

impl Metadata {
    /// Returns whether it is that issuer's, letter by letter, and all of its URLs are safe.
    pub(crate) fn is_of(&self, issuer: &str) -> bool {
        let urls = [
            &self.authorization_endpoint,
            &self.token_endpoint,
            &self.jwks_uri,
        ];
        let urls = urls.into_iter().chain(&self.userinfo_endpoint);
        self.issuer == issuer && urls.into_iter().all(|url| is_safe(url))
    }

    /// Returns whether the token endpoint takes credentials in the header `Authorization`, which is the default.
    pub(crate) fn takes_basic_credentials(&self) -> bool {
        let methods = &self.token_endpoint_auth_methods_supported;
        methods.is_empty() || methods.iter().any(|it| it == "client_secret_basic")
    }
}

/// Returns whether a URL is https, or http on this machine.
pub(crate) fn is_safe(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else {
        return false;
    };
    match (url.scheme(), url.host()) {
        ("https", Some(_)) => true,
        ("http", Some(Host::Ipv4(address))) => address.is_loopback(),
        ("http", Some(Host::Ipv6(address))) => address.is_loopback(),
        ("http", Some(Host::Domain(name))) => name == "localhost",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_is_for_this_machine_only() {
        for url in [
            "https://id.example.org",
            "http://127.0.0.1:8080/x",
            "http://[::1]/",
            "http://localhost:1",
        ] {
            assert!(is_safe(url), "{url}");
        }
        for url in [
            "http://id.example.org",
            "http://10.0.0.1",
            "http://localhost.example.org",
            "file:///etc/passwd",
            "id.example.org",
        ] {
            assert!(!is_safe(url), "{url}");
        }
    }
}
