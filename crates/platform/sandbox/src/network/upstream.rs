//! Proxy of the lab's network, through which this machine reaches the internet.

use std::io;

use base64::{Engine, prelude::BASE64_STANDARD};
use percent_encoding::percent_decode_str;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use url::Url;

use super::endpoint::Endpoint;

/// Maximum length of the response to `CONNECT`, in bytes.
const MAX_ANSWER_BYTES: usize = 16 * 1024;

/// Proxies by scheme, and hosts that are reached without.
#[derive(Clone, Debug, Default)]
pub(crate) struct Upstream {
    http: Option<UpstreamProxy>,
    https: Option<UpstreamProxy>,
    /// Host names and suffixes.
    direct: Vec<String>,
}

/// Address of a proxy. Scripts never see its credentials.
#[derive(Clone)]
pub(crate) struct UpstreamProxy {
    endpoint: Endpoint,
    /// Value of `Proxy-Authorization`.
    pub(crate) authorization: Option<String>,
}

impl std::fmt::Debug for UpstreamProxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the credentials.
        f.debug_tuple("UpstreamProxy")
            .field(&self.endpoint)
            .finish()
    }
}

impl Upstream {
    /// Reads the variables of this process.
    pub(crate) fn of_this_process() -> Self {
        // Not `vars`, which panics at a variable that is not UTF-8.
        let variables: Vec<(String, String)> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        Self::from_variables(&variables)
    }

    /// Reads the variables that programs use. Of several for the same purpose the first counts.
    pub(crate) fn from_variables(variables: &[(String, String)]) -> Self {
        let find = |names: [&str; 3]| {
            names.into_iter().find_map(|wanted| {
                let mut matching = variables.iter().filter(|(name, _)| *name == wanted);
                matching.find_map(|(_, value)| UpstreamProxy::parse(value))
            })
        };
        let direct = variables
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case("no_proxy"))
            .map(|(_, value)| &**value);
        Self {
            http: find(["http_proxy", "HTTP_PROXY", "ALL_PROXY"]),
            https: find(["https_proxy", "HTTPS_PROXY", "ALL_PROXY"]),
            direct: direct
                .unwrap_or_default()
                .split(',')
                // curl and Python differ on the leading dot; both mean the domain and all below it.
                .map(|host| host.trim().trim_start_matches('.').to_ascii_lowercase())
                .filter(|host| !host.is_empty())
                .collect(),
        }
    }

    /// Returns true if a proxy needs credentials.
    pub(crate) fn has_credentials(&self) -> bool {
        let proxies = [&self.http, &self.https].into_iter().flatten();
        proxies.into_iter().any(|it| it.authorization.is_some())
    }

    /// Returns the proxy for a host, if it is not reached directly.
    pub(crate) fn for_host(&self, host: &str, is_tunnel: bool) -> Option<&UpstreamProxy> {
        // A domain also means all hosts below it: `a.lab` for `lab`, but not `mylab`.
        let is_direct = self.direct.iter().any(|direct| {
            direct == "*"
                || host == direct
                || host
                    .strip_suffix(&**direct)
                    .is_some_and(|rest| rest.ends_with('.'))
        });
        let proxy = if is_tunnel { &self.https } else { &self.http };
        proxy.as_ref().filter(|_| !is_direct)
    }
}

impl UpstreamProxy {
    /// Reads the URL of an HTTP proxy, with or without credentials.
    fn parse(value: &str) -> Option<Self> {
        let value = value.trim();
        let url = if value.contains("://") {
            Url::parse(value)
        } else {
            // As curl and Python do, a proxy without a scheme is taken for an HTTP proxy.
            Url::parse(&format!("http://{value}"))
        };
        let url = url.ok()?;
        if url.scheme() != "http" {
            tracing::warn!(
                scheme = url.scheme(),
                "scripts cannot use a proxy of this kind: only http:// proxies are supported"
            );
            return None;
        }
        Some(Self {
            endpoint: Endpoint::of(&url)?,
            authorization: authorization(&url),
        })
    }

    /// Connects to the proxy, and through it to the endpoint, if one is given.
    pub(crate) async fn connect(&self, through: Option<&Endpoint>) -> io::Result<TcpStream> {
        let Endpoint { host, port } = &self.endpoint;
        let mut server = TcpStream::connect((&**host, *port)).await?;
        let Some(Endpoint { host, port }) = through else {
            return Ok(server);
        };
        // An IPv6 address needs brackets in the authority of CONNECT.
        let host = if host.contains(':') {
            format!("[{host}]")
        } else {
            host.clone()
        };
        let mut text = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n");
        if let Some(authorization) = &self.authorization {
            text.push_str("Proxy-Authorization: ");
            text.push_str(authorization);
            text.push_str("\r\n");
        }
        text.push_str("\r\n");
        server.write_all(text.as_bytes()).await?;
        let mut response = Vec::new();
        // Byte by byte: what follows belongs to the tunnel.
        while !response.ends_with(b"\r\n\r\n") && response.len() < MAX_ANSWER_BYTES {
            response.push(server.read_u8().await?);
        }
        let status = response.split(|byte| *byte == b' ').nth(1);
        if status == Some(b"200") {
            Ok(server)
        } else {
            let status = String::from_utf8_lossy(status.unwrap_or_default()).into_owned();
            Err(io::Error::other(format!(
                "the network's proxy answered {status}"
            )))
        }
    }
}

/// Returns the `Basic` authorization of a URL with credentials.
pub(crate) fn authorization(url: &Url) -> Option<String> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let (user, password) = (
        decoded(url.username()),
        decoded(url.password().unwrap_or("")),
    );
    let encoded = BASE64_STANDARD.encode(format!("{user}:{password}"));
    Some(format!("Basic {encoded}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_read_with_its_credentials_and_hosts_that_need_none() {
        let variables = [
            ("HTTPS_PROXY", "http://ada:s%40fe@proxy.lab:3128"),
            ("NO_PROXY", "localhost, .lab"),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let upstream = Upstream::from_variables(&variables);
        let proxy = upstream.for_host("example.org", true).unwrap();
        assert_eq!(
            (&*proxy.endpoint.host, proxy.endpoint.port),
            ("proxy.lab", 3128)
        );
        assert_eq!(proxy.authorization.as_deref(), Some("Basic YWRhOnNAZmU="));
        assert!(!format!("{upstream:?}").contains("YWRh"));
        assert!(upstream.for_host("example.org", false).is_none());
        for direct in ["localhost", "index.lab", "lab"] {
            assert!(upstream.for_host(direct, true).is_none(), "{direct}");
        }
        assert!(upstream.for_host("notlab", true).is_some());
    }
}
