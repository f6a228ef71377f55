//! Network access of an installation: package indexes, without their credentials.

use labdata_redacted::Variables;
use url::Url;

use crate::network::{Endpoint, MirroredServer, Upstream, authorization};

/// Variables whose values are URLs of indexes.
const INDEX_VARIABLES: [&str; 5] = [
    "UV_DEFAULT_INDEX",
    "UV_INDEX",
    "UV_INDEX_URL",
    "UV_EXTRA_INDEX_URL",
    "UV_FIND_LINKS",
];

/// Hosts of the index that uv uses by default.
const DEFAULT_HOSTS: [&str; 2] = ["pypi.org", "files.pythonhosted.org"];

/// Start of the URLs of indexes with credentials, to be replaced by that of the mirror.
const MIRROR: &str = "http://mirror.invalid";

/// Access of an installation.
#[derive(Debug)]
pub(crate) struct InstallAccess {
    /// Variables without credentials and proxies.
    pub(crate) variables: Variables,
    /// Variables that name the lab's proxy, perhaps with credentials.
    pub(crate) proxies: Variables,
    /// Proxy of the lab's network.
    pub(crate) upstream: Upstream,
    /// Servers of the indexes.
    pub(crate) endpoints: Vec<Endpoint>,
    /// Servers that need credentials.
    pub(crate) mirrored: Vec<MirroredServer>,
}

impl InstallAccess {
    /// Separates the credentials from the variables of uv.
    pub(crate) fn new(given: Vec<(String, String)>) -> Self {
        let mut access = Self {
            upstream: Upstream::from_variables(&given),
            variables: Variables::new(),
            proxies: Variables::new(),
            endpoints: Vec::new(),
            mirrored: Vec::new(),
        };
        for (name, value) in given {
            // Both spellings of these names are in use, `HTTPS_PROXY` and `https_proxy`.
            if name.to_ascii_lowercase().ends_with("_proxy") {
                access.proxies.push((name, value));
            } else if INDEX_VARIABLES.contains(&&*name) {
                // uv separates these links by commas, and indexes by white space.
                let separator = if name == "UV_FIND_LINKS" { ',' } else { ' ' };
                let is_separator = |found: char| match separator {
                    ',' => found == ',',
                    _ => found.is_whitespace(),
                };
                let values: Vec<String> = value
                    .split(is_separator)
                    .filter(|word| !word.is_empty())
                    .map(|word| access.index(word))
                    .collect();
                access
                    .variables
                    .push((name, values.join(&separator.to_string())));
            } else {
                access.variables.push((name, value));
            }
        }
        // Without an index in the variables uv asks PyPI, whose files are on a second host.
        if access.endpoints.is_empty() {
            access.endpoints.extend(DEFAULT_HOSTS.map(|host| Endpoint {
                host: host.to_owned(),
                port: 443,
            }));
        }
        access
    }

    /// Returns the value for uv of one index, `URL` or `name=URL`.
    fn index(&mut self, word: &str) -> String {
        // `name=URL` names an index; after a colon or a slash, `=` belongs to the URL.
        let (name, address) = match word.split_once('=') {
            Some((name, address)) if !name.contains([':', '/']) => (Some(name), address),
            _ => (None, word),
        };
        // uv takes directories of this machine as well.
        let Ok(mut url) = Url::parse(address) else {
            return word.to_owned();
        };
        self.endpoints.extend(Endpoint::of(&url));
        let Some(authorization) = authorization(&url) else {
            return word.to_owned();
        };
        // Fails only for a URL without a host, which has no password either.
        let _ = url.set_username("").and_then(|()| url.set_password(None));
        let origin = url.origin().ascii_serialization();
        let path = url.as_str().strip_prefix(&origin).unwrap_or_default();
        let address = format!("{MIRROR}/{}{path}", self.mirrored.len());
        self.mirrored.push(MirroredServer {
            origin,
            authorization,
        });
        name.map_or(address.clone(), |name| format!("{name}={address}"))
    }
}

/// Replaces the start of mirrored URLs by that of the mirror.
pub(crate) fn name_mirror(environment: &mut [(String, String)], mirror: &str) {
    for (_, value) in environment {
        if value.contains(MIRROR) {
            *value = value.replace(MIRROR, mirror);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_of_indexes_and_proxies_are_not_among_the_variables() {
        let given = [
            ("UV_DEFAULT_INDEX", "https://ada:hunter2@index.lab/simple/"),
            (
                "UV_INDEX",
                "own=https://token@own.lab:8443/x https://plain.lab/simple",
            ),
            ("HTTPS_PROXY", "http://ada:hunter2@proxy.lab:3128"),
            ("UV_OFFLINE", "0"),
        ];
        let given = given.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut access = InstallAccess::new(given.to_vec());
        name_mirror(&mut access.variables, "http://127.0.0.1:1/t");
        let expected = [
            ("UV_DEFAULT_INDEX", "http://127.0.0.1:1/t/0/simple/"),
            (
                "UV_INDEX",
                "own=http://127.0.0.1:1/t/1/x https://plain.lab/simple",
            ),
            ("UV_OFFLINE", "0"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(*access.variables, expected);
        let [index, own] = &*access.mirrored else {
            panic!("two servers need credentials");
        };
        assert_eq!(index.origin, "https://index.lab");
        assert_eq!(index.authorization, "Basic YWRhOmh1bnRlcjI=");
        assert_eq!(own.origin, "https://own.lab:8443");
        let hosts: Vec<&str> = access.endpoints.iter().map(|it| &*it.host).collect();
        assert_eq!(hosts, ["index.lab", "own.lab", "plain.lab"]);
        assert!(access.upstream.has_credentials());
    }
}
