//! URLs of this server in responses.

/// Base of this server's URLs: as it is configured, and as the caller reaches it.
#[derive(Clone, Debug, Default)]
pub struct BaseUrl {
    /// The base of the URLs that adapters make, without a trailing slash.
    pub configured: String,
    /// The base with which the caller reaches the server.
    pub reached: String,
}

impl BaseUrl {
    /// The host with which the caller reaches the server: a name or an address, without brackets and port.
    #[must_use]
    pub fn host(&self) -> String {
        let (_, rest) = self.reached.split_once("://").unwrap_or_default();
        let authority = rest.split('/').next().unwrap_or_default();
        let host = match authority.strip_prefix('[') {
            Some(address) => address.split(']').next(),
            None => authority.split(':').next(),
        };
        host.unwrap_or_default().to_owned()
    }

    /// A URL of this server as the caller reaches it. URLs of other servers, such as a bucket's, stay as
    /// they are.
    #[must_use]
    pub fn localize(&self, url: String) -> String {
        match url.strip_prefix(&self.configured) {
            // The slash distinguishes `http://lab` from `http://lab.example`.
            Some(rest) if rest.starts_with('/') => format!("{}{rest}", self.reached),
            _ => url,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_without_port_and_brackets() {
        for (reached, host) in [
            ("http://127.0.0.1:8080", "127.0.0.1"),
            ("https://lab.example.org/base", "lab.example.org"),
            ("http://[::1]:8080", "::1"),
            ("", ""),
        ] {
            let url = BaseUrl {
                reached: reached.to_owned(),
                ..BaseUrl::default()
            };
            assert_eq!(url.host(), host);
        }
    }
}
