//! URLs of databases behind a Unix socket.

use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Name of the cluster's superuser and of the platform's database.
pub(crate) const NAME: &str = "labdata";

/// Returns `postgresql://labdata:password@%2Fsocket%2Fdirectory/database`, as libpq and tokio-postgres
/// read it.
pub(crate) fn connection_url(socket_dir: &Path, password: Option<&str>, database: &str) -> String {
    let mut url = format!("postgresql://{NAME}");
    if let Some(password) = password {
        url.push(':');
        encode(&mut url, password.as_bytes());
    }
    url.push('@');
    encode(&mut url, socket_dir.as_os_str().as_bytes());
    url.push('/');
    encode(&mut url, database.as_bytes());
    url
}

fn encode(url: &mut String, bytes: &[u8]) {
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) {
            url.push(char::from(*byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(url, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio_postgres::Config;
    use tokio_postgres::config::Host;

    use super::*;

    #[test]
    fn tokio_postgres_reads_socket_role_and_database() {
        let directory = Path::new("/srv/lab data/ü/run");
        let url = connection_url(directory, Some("p@ss"), "odd/na%me?");
        let config: Config = url.parse().expect("valid");
        assert_eq!(config.get_hosts(), [Host::Unix(directory.to_owned())]);
        assert_eq!(config.get_user(), Some(NAME));
        assert_eq!(config.get_password(), Some(&b"p@ss"[..]));
        assert_eq!(config.get_dbname(), Some("odd/na%me?"));
    }
}
