//! The database server: its addresses, and how connections to it are encrypted, from its URL.
//!
//! Every connection of the platform is made from one [`Server`], so they all follow the same hosts and
//! the same `sslmode`.

use std::time::Duration;

use labdata_redacted::Secret;
use percent_encoding::percent_decode_str;
use tokio_postgres::{
    Config,
    config::{Host, SslMode, SslNegotiation, TargetSessionAttrs},
};

use crate::database::tls::{Connector, Encryption};

/// Timeout of connecting.
pub(crate) const CONNECT: Duration = Duration::from_secs(5);

/// Time without a sign of life after which the host of a connection counts as lost.
const LOST_HOST: Duration = Duration::from_secs(5);

/// Interval of probes while nothing is sent.
const PROBE: Duration = Duration::from_secs(2);

/// The driver's time until the first probe.
const IDLE_BY_DEFAULT: Duration = Duration::from_hours(2);

/// Names of the parameters that this module reads itself.
const SSL_MODE: &str = "sslmode";
const SSL_ROOT_CERT: &str = "sslrootcert";

/// A database URL that cannot be used: one line for the operator, without the password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidDatabaseUrl(String);

impl InvalidDatabaseUrl {
    /// A pool that cannot be built, which no URL causes.
    pub(crate) fn of_pool(error: &dyn std::fmt::Display) -> Self {
        Self(error.to_string())
    }
}

/// One address of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// Name or socket directory; the name on the server's certificate.
    pub(crate) host: Host,
    /// IP address to connect to, if the URL gives one besides the name.
    pub(crate) ip: Option<std::net::IpAddr>,
    pub(crate) port: u16,
}

/// Address at which other programs connect to the server of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAddress {
    /// Name or address; `None` for a Unix socket of this machine.
    pub host: Option<String>,
    /// Port.
    pub port: u16,
    /// Name of the database.
    pub database: String,
    /// True if the URL asks for TLS.
    pub requires_tls: bool,
}

/// Returns where other programs connect to the server of a URL: the first of its hosts.
///
/// # Errors
/// [`InvalidDatabaseUrl`].
pub fn server_address(url: &str) -> Result<ServerAddress, InvalidDatabaseUrl> {
    let (_, mode, _) = take_ssl_parameters(url);
    let server = Server::parse(url)?;
    let first = server.addresses.first();
    let first = first.ok_or_else(|| wrong("it names no host"))?;
    Ok(ServerAddress {
        host: match &first.host {
            Host::Tcp(name) => Some(name.clone()),
            Host::Unix(_) => None,
        },
        port: first.port,
        database: server.database,
        requires_tls: mode
            .is_some_and(|mode| matches!(mode.as_str(), "require" | "verify-ca" | "verify-full")),
    })
}

/// A database server.
#[derive(Clone)]
pub(crate) struct Server {
    /// Connection parameters for the driver.
    pub(crate) config: Config,
    pub(crate) connector: Connector,
    /// Addresses, in the order in which they are tried.
    pub(crate) addresses: Vec<Address>,
    pub(crate) database: String,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Never the password.
        f.debug_struct("Server")
            .field("addresses", &self.addresses)
            .field("database", &self.database)
            .finish_non_exhaustive()
    }
}

impl Server {
    /// Reads a URL as libpq does: several hosts with ports, `target_session_attrs`, `sslmode` and
    /// `sslrootcert`.
    ///
    /// # Errors
    /// [`InvalidDatabaseUrl`].
    pub(crate) fn parse(url: &str) -> Result<Self, InvalidDatabaseUrl> {
        let (rest, mode, root) = take_ssl_parameters(url);
        let mut config: Config = rest.parse().map_err(|error: tokio_postgres::Error| {
            let cause = std::error::Error::source(&error);
            InvalidDatabaseUrl(cause.map_or_else(|| error.to_string(), ToString::to_string))
        })?;
        let addresses = addresses(&config)?;
        // As libpq: a database without a name is called like its user.
        let database = config.get_dbname().or(config.get_user());
        let database = database
            .ok_or_else(|| wrong("it names no database"))?
            .to_owned();
        let sockets = addresses
            .iter()
            .filter(|address| matches!(address.host, Host::Unix(_)))
            .count();
        let encryption =
            Encryption::parse(mode.as_deref(), root.as_deref()).map_err(InvalidDatabaseUrl)?;
        let encryption = match sockets {
            0 => encryption,
            // PostgreSQL has no TLS on Unix sockets.
            _ if sockets == addresses.len() => Encryption::Disabled,
            _ => {
                // One `sslmode` applies to all hosts of a URL, and sockets have no TLS.
                return Err(wrong(
                    "its hosts are either all sockets or all on the network",
                ));
            }
        };
        if sockets == 0 {
            // The connector itself asks the server for TLS, where it is wanted.
            config.ssl_mode(SslMode::Require);
            config.ssl_negotiation(SslNegotiation::Direct);
        } else {
            config.ssl_mode(SslMode::Disable);
        }
        if addresses.len() > 1 && config.get_connect_timeout().is_none() {
            let each = u32::try_from(addresses.len()).unwrap_or(u32::MAX);
            // A host that does not respond leaves time for the next one.
            config.connect_timeout((CONNECT / each).max(Duration::from_millis(500)));
        }
        notice_lost_hosts(&mut config);
        // The driver begins no TLS without a host name; the address stands in for it.
        if config.get_hosts().is_empty() {
            for address in &addresses {
                if let Host::Tcp(ip) = &address.host {
                    config.host(ip);
                }
            }
        }
        Ok(Self {
            connector: Connector::new(encryption),
            config,
            addresses,
            database,
        })
    }

    /// True if connections must lead to a server that takes writes.
    pub(crate) fn needs_primary(&self) -> bool {
        self.config.get_target_session_attrs() == TargetSessionAttrs::ReadWrite
    }

    /// Hosts and ports, for the operator.
    pub(crate) fn display(&self) -> String {
        let displayed = self.addresses.iter().map(|address| match &address.host {
            // An IPv6 address: without brackets its end would look like the port.
            Host::Tcp(name) if name.contains(':') => format!("[{name}]:{}", address.port),
            Host::Tcp(name) => format!("{name}:{}", address.port),
            Host::Unix(directory) => directory.display().to_string(),
        });
        displayed.collect::<Vec<_>>().join(", ")
    }
}

/// Closes connections to a host that vanished, where the URL does not say when. The defaults of the
/// system take minutes to hours, in which each of them would occupy a place in the pool.
fn notice_lost_hosts(config: &mut Config) {
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(LOST_HOST);
    }
    // The driver does not say whether the URL set it: an explicit two hours are replaced as well.
    if config.get_keepalives_idle() == IDLE_BY_DEFAULT {
        config.keepalives_idle(PROBE);
    }
    if config.get_keepalives_interval().is_none() {
        config.keepalives_interval(PROBE);
    }
}

/// Checks a database URL without connecting.
///
/// # Errors
/// [`InvalidDatabaseUrl`].
pub fn check_database_url(url: &str) -> Result<(), InvalidDatabaseUrl> {
    Server::parse(url).map(drop)
}

/// A URL that may be displayed to every user of the machine, and the password that it had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlainUrl {
    pub(crate) url: String,
    pub(crate) password: Option<Secret>,
}

/// Takes the password out of a database URL; `None` for what is not a URL.
pub(crate) fn without_password(url: &str) -> Option<PlainUrl> {
    let (scheme, rest) = url.split_once("://")?;
    let decoded = |text: &str| {
        let text = percent_decode_str(text).decode_utf8_lossy();
        Some(Secret::new(text.into_owned()))
    };
    let (base, query) = rest.split_once('?').unwrap_or((rest, ""));
    // Only up to the first slash: the name of the database may contain an `@`.
    let authority = base.split('/').next().unwrap_or_default();
    let mut password = None;
    let base = match authority.rsplit_once('@') {
        // Split at the last `@`: a password may contain one that is not encoded.
        Some((user, _)) if user.contains(':') => {
            let (name, given) = user.split_once(':').unwrap_or((user, ""));
            password = decoded(given);
            format!("{name}{}", base.get(user.len()..)?)
        }
        _ => base.to_owned(),
    };
    let mut parameters = Vec::new();
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        match parameter.split_once('=') {
            // libpq also reads the password from the parameters.
            Some(("password", given)) => password = decoded(given),
            _ => parameters.push(parameter),
        }
    }
    let separator = if parameters.is_empty() { "" } else { "?" };
    Some(PlainUrl {
        url: format!("{scheme}://{base}{separator}{}", parameters.join("&")),
        password,
    })
}

fn wrong(reason: &str) -> InvalidDatabaseUrl {
    InvalidDatabaseUrl(reason.to_owned())
}

/// Removes the parameters that the driver does not read; returns the rest of the URL and their values.
fn take_ssl_parameters(url: &str) -> (String, Option<String>, Option<String>) {
    let Some((base, query)) = url.split_once('?') else {
        return (url.to_owned(), None, None);
    };
    let (mut mode, mut root, mut others) = (None, None, Vec::new());
    for parameter in query.split('&') {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let value = || Some(percent_decode_str(value).decode_utf8_lossy().into_owned());
        match name {
            SSL_MODE => mode = value(),
            SSL_ROOT_CERT => root = value(),
            _ => others.push(parameter),
        }
    }
    let rest = if others.is_empty() {
        base.to_owned()
    } else {
        format!("{base}?{}", others.join("&"))
    };
    (rest, mode, root)
}

fn addresses(config: &Config) -> Result<Vec<Address>, InvalidDatabaseUrl> {
    let (hosts, ips, ports) = (
        config.get_hosts(),
        config.get_hostaddrs(),
        config.get_ports(),
    );
    let count = hosts.len().max(ips.len());
    if count == 0 {
        return Err(wrong("it names no host"));
    }
    if !hosts.is_empty() && !ips.is_empty() && hosts.len() != ips.len() {
        return Err(wrong("it has not one hostaddr for each host"));
    }
    if ports.len() > 1 && ports.len() != count {
        return Err(wrong("it has not one port for each host"));
    }
    let address = |index: usize| {
        let ip = ips.get(index).copied();
        let host = hosts.get(index).cloned();
        Some(Address {
            host: host.or_else(|| ip.map(|ip| Host::Tcp(ip.to_string())))?,
            ip,
            port: *ports.get(index).or(ports.first()).unwrap_or(&5432),
        })
    };
    (0..count)
        .map(address)
        .collect::<Option<_>>()
        .ok_or_else(|| wrong("it names no host"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> String {
        Server::parse(url).expect_err(url).to_string()
    }

    #[tokio::test]
    async fn a_url_may_name_several_hosts() {
        let server = Server::parse(
            "postgresql://u:p@a:1,b:2/lab?target_session_attrs=read-write&sslmode=require",
        );
        let server = server.expect("a server");
        assert_eq!(server.display(), "a:1, b:2");
        assert!(server.needs_primary());
        let server = Server::parse("postgresql://u@a,b/lab").expect("a server");
        assert_eq!(server.display(), "a:5432, b:5432");
        let server = Server::parse("postgresql://u@%2Ftmp%2Fx/lab").expect("a server");
        assert_eq!(server.display(), "/tmp/x");
    }

    #[test]
    fn a_password_is_taken_out_of_a_url() {
        for (given, plain, password) in [
            (
                "postgresql://u:p%40s@a,b:2/lab",
                "postgresql://u@a,b:2/lab",
                Some("p@s"),
            ),
            (
                "postgres://u@%2Ftmp%2Fx/lab",
                "postgres://u@%2Ftmp%2Fx/lab",
                None,
            ),
            (
                "postgresql://h/lab?password=p&sslmode=require",
                "postgresql://h/lab?sslmode=require",
                Some("p"),
            ),
            ("postgresql://h:5432/lab", "postgresql://h:5432/lab", None),
        ] {
            let found = without_password(given).expect(given);
            assert_eq!(found.url, plain);
            let revealed = found.password.as_ref().map(Secret::reveal);
            assert_eq!(revealed, password, "{given}");
        }
        assert_eq!(without_password("host=a password=b"), None);
    }

    #[tokio::test]
    async fn a_lost_host_is_noticed_in_seconds_unless_the_url_says_when() {
        let server = Server::parse("postgresql://u@a,b/lab").expect("a server");
        let config = &server.config;
        assert_eq!(config.get_tcp_user_timeout(), Some(&LOST_HOST));
        assert_eq!(config.get_keepalives_idle(), PROBE);
        let url = "postgresql://u@a/lab?tcp_user_timeout=60&keepalives_idle=20";
        let server = Server::parse(url).expect("a server");
        let config = &server.config;
        let minute = Duration::from_mins(1);
        assert_eq!(config.get_tcp_user_timeout(), Some(&minute));
        assert_ne!(config.get_keepalives_idle(), PROBE);
    }

    #[tokio::test]
    async fn what_cannot_be_used_is_one_line_without_the_password() {
        for (url, part) in [
            ("postgresql://u:hunter2@a/lab?sslmode=allow", "sslmode"),
            (
                "postgresql://u:hunter2@a/lab?sslrootcert=/nowhere&sslmode=verify-full",
                "sslrootcert",
            ),
            ("postgresql://u:hunter2@a/lab?nonsense=1", "nonsense"),
            ("postgresql://u:hunter2@a:1,b:2,c/lab?port=1", ""),
            ("postgresql://u:hunter2@a,%2Ftmp/lab", "sockets"),
            (
                "postgresql://u:hunter2@a/lab?target_session_attrs=fast",
                "target_session_attrs",
            ),
        ] {
            let line = refused(url);
            assert!(line.contains(part), "{line}");
            assert!(!line.contains("hunter2") && !line.contains('\n'), "{line}");
        }
    }
}
