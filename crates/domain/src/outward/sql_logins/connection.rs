//! Connection details for a person's tool.

use std::fmt::Write;

use super::SqlPassword;

/// Address at which PostgreSQL's protocol is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlEndpoint {
    /// Host name or address; `None` for the host by which callers reach the platform.
    pub host: Option<String>,
    /// Port.
    pub port: u16,
    /// Name of the database.
    pub database: String,
    /// True if the server refuses connections without TLS.
    pub requires_tls: bool,
}

/// All that a tool needs to connect. It holds the password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlConnection {
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Name of the database.
    pub database: String,
    /// Name of the role.
    pub user: String,
    /// Password of the role.
    pub password: SqlPassword,
    /// True if the server refuses connections without TLS.
    pub requires_tls: bool,
}

/// Lines to paste into tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionExamples {
    /// A shell.
    pub psql: String,
    /// R with DBI.
    pub r: String,
    /// MATLAB's Database Toolbox.
    pub matlab: String,
    /// `DuckDB`.
    pub duckdb: String,
    /// Grafana's data source, in the words of its form.
    pub grafana: String,
}

impl SqlConnection {
    /// The connection of a login at an endpoint. `reached` is the host by which the caller reached the platform.
    #[must_use]
    pub fn of(endpoint: &SqlEndpoint, reached: &str, user: String, password: SqlPassword) -> Self {
        Self {
            host: endpoint.host.clone().unwrap_or_else(|| reached.to_owned()),
            port: endpoint.port,
            database: endpoint.database.clone(),
            user,
            password,
            requires_tls: endpoint.requires_tls,
        }
    }

    /// libpq's `sslmode`.
    const fn ssl_mode(&self) -> &'static str {
        if self.requires_tls {
            "require"
        } else {
            "prefer"
        }
    }

    /// The URL that libpq, ADBC, psycopg and SQLAlchemy read.
    #[must_use]
    pub fn dsn(&self) -> String {
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        format!(
            "postgresql://{}:{}@{host}:{}/{}?sslmode={}",
            self.user,
            self.password.reveal(),
            self.port,
            encoded(&self.database),
            self.ssl_mode()
        )
    }

    /// Lines to paste into tools. Each holds the password.
    #[must_use]
    pub fn examples(&self) -> ConnectionExamples {
        let Self {
            host,
            port,
            database,
            user,
            ..
        } = self;
        let (password, mode, dsn) = (self.password.reveal(), self.ssl_mode(), self.dsn());
        let grafana_mode = if self.requires_tls {
            "require"
        } else {
            "disable"
        };
        ConnectionExamples {
            psql: format!("psql '{dsn}'"),
            r: format!(
                "con <- DBI::dbConnect(RPostgres::Postgres(), host = \"{host}\", port = {port}, dbname = \"{database}\", \
                 user = \"{user}\", password = \"{password}\", sslmode = \"{mode}\")"
            ),
            matlab: format!(
                "conn = postgresql(\"{user}\", \"{password}\", Server=\"{host}\", PortNumber={port}, \
                 DatabaseName=\"{database}\");"
            ),
            duckdb: format!(
                "INSTALL postgres; LOAD postgres; ATTACH '{dsn}' AS lab (TYPE postgres, READ_ONLY);"
            ),
            grafana: format!(
                "Host URL: {host}:{port} · Database name: {database} · Username: {user} · Password: {password} · \
                 TLS/SSL mode: {grafana_mode}"
            ),
        }
    }
}

/// A name of a database within a URL.
fn encoded(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            // Writing to a text cannot fail.
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(host: Option<&str>, requires_tls: bool) -> SqlConnection {
        let endpoint = SqlEndpoint {
            host: host.map(ToOwned::to_owned),
            port: 5433,
            database: "lab data".to_owned(),
            requires_tls,
        };
        let password = SqlPassword::from_random([1; 32]);
        SqlConnection::of(&endpoint, "::1", "sql_7".to_owned(), password)
    }

    #[test]
    fn the_url_names_the_endpoint_or_the_host_that_was_reached() {
        let password = "01".repeat(32);
        assert_eq!(
            connection(Some("db.example.org"), true).dsn(),
            format!("postgresql://sql_7:{password}@db.example.org:5433/lab%20data?sslmode=require")
        );
        assert_eq!(
            connection(None, false).dsn(),
            format!("postgresql://sql_7:{password}@[::1]:5433/lab%20data?sslmode=prefer")
        );
    }

    #[test]
    fn every_example_holds_what_its_tool_needs() {
        let examples = connection(Some("db"), true).examples();
        for example in [
            examples.psql,
            examples.r,
            examples.matlab,
            examples.duckdb,
            examples.grafana,
        ] {
            for part in ["sql_7", "5433", &"01".repeat(32)] {
                assert!(example.contains(part), "{example}");
            }
        }
    }
}
