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
