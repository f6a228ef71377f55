//! Host and port of a server.

use url::{Host, Url};

/// Host name and port that the operator has named, such as those of the package index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Endpoint {
    /// Returns the endpoint of a URL that has a host and a known port.
    pub(crate) fn of(url: &Url) -> Option<Self> {
        let host = match url.host()? {
            Host::Domain(name) => name.to_ascii_lowercase(),
            Host::Ipv4(address) => address.to_string(),
            Host::Ipv6(address) => address.to_string(),
        };
        Some(Self {
            host,
            port: url.port_or_known_default()?,
        })
    }
}
