//! Connecting to the database, and the settings of every connection.

use std::time::Duration;

use diesel::ConnectionError;
use diesel_async::{AsyncPgConnection, SimpleAsyncConnection};
use labdata_ports::PortError;
use tokio::time::Instant;
use tokio_postgres::{Client, Socket, error::SqlState, tls::TlsStream};

use crate::database::{
    errors::{NO_ANSWER, port_error},
    server::{CONNECT, Server},
};

/// Settings of every connection, besides the time limits. Messages are in English where the role may
/// choose, because the driver retains no SQLSTATE ([`super::condition`]). Names are never looked up
/// in a schema that is not named. Statements are short: compiling one takes longer than running it. The most rows of a
/// write are sorted in memory; with PostgreSQL's 4 MB they go to the disk, which takes a tenth of an upsert.
const SETUP: &str = "SET application_name = 'labdata'; \
     SET timezone = 'UTC'; \
     SET standard_conforming_strings = on; \
     SET search_path = pg_catalog; \
     SET idle_in_transaction_session_timeout = '60s'; \
     SET jit = off; \
     SET work_mem = '16MB'; \
     SET client_min_messages = warning; \
     DO $$ BEGIN SET lc_messages = 'C'; EXCEPTION WHEN insufficient_privilege THEN NULL; END $$";

/// Message for a server that accepts no further connection, and the beginning of the error.
const NO_FREE_CONNECTION: &str = "the database has no free connection";

/// Pause between attempts to reach a server that does not respond yet.
const RETRY: Duration = Duration::from_millis(500);

/// Time limits of the statements of a connection; zero is none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    /// Time that a statement waits for locked rows.
    pub(crate) lock: Duration,
    /// Time that a statement takes.
    pub(crate) statement: Duration,
}

/// Connects and applies the settings.
pub(crate) async fn connect(
    server: &Server,
    limits: Limits,
) -> Result<AsyncPgConnection, ConnectionError> {
    let connected = server.config.connect(server.connector.clone()).await;
    let (client, driver) = connected.map_err(|error| bad_connection(&error))?;
    set_up(client, driver, limits).await
}

/// Applies the settings to a new connection.
async fn set_up<S>(
    client: Client,
    driver: tokio_postgres::Connection<Socket, S>,
    limits: Limits,
) -> Result<AsyncPgConnection, ConnectionError>
where
    S: TlsStream + Unpin + Send + 'static,
{
    let mut connection = AsyncPgConnection::try_from_client_and_connection(client, driver).await?;
    // One simple query, so that all settings cost one round trip.
    let setup = format!(
        "SET lock_timeout = {}; SET statement_timeout = {}; {SETUP}",
        limits.lock.as_millis(),
        limits.statement.as_millis()
    );
    connection
        .batch_execute(&setup)
        .await
        .map_err(ConnectionError::CouldntSetupConfiguration)?;
    Ok(connection)
}

/// The error of an attempt to connect. Diesel's carries a text and no SQLSTATE, so the text begins with
/// the one that matters.
fn bad_connection(error: &tokio_postgres::Error) -> ConnectionError {
    let causes = with_causes(error);
    let is_full = error.code() == Some(&SqlState::TOO_MANY_CONNECTIONS);
    ConnectionError::BadConnection(if is_full {
        format!("{NO_FREE_CONNECTION}: {causes}")
    } else {
        causes
    })
}

/// Waits until the server responds, for as long as `wait_limit`; returns the connection.
///
/// # Errors
/// The cause, in one line with the server's address: of the last attempt, or of the first that the
/// server refused (a wrong password, an unknown database), which waiting does not change.
pub(crate) async fn wait_for(
    server: &Server,
    limits: Limits,
    wait_limit: Duration,
) -> Result<AsyncPgConnection, String> {
    let until = Instant::now() + wait_limit;
    loop {
        // The driver's own limit ends with the TCP handshake; a frozen server accepts and stays silent.
        let attempt = tokio::time::timeout(CONNECT, attempt(server, limits)).await;
        let (cause, is_final) = match attempt {
            Ok(Ok(connection)) => return Ok(connection),
            Ok(Err(refused)) => refused,
            Err(_) => (format!("no response within {} s", CONNECT.as_secs()), false),
        };
        // A pause beyond the limit would only delay the report.
        if is_final || Instant::now() + RETRY >= until {
            let server = server.display();
            return Err(format!("the database at {server} cannot be used: {cause}"));
        }
        tracing::debug!(cause, "the database does not respond yet");
        tokio::time::sleep(RETRY).await;
    }
}

/// Connects once. An error comes with true if the server will respond the same again.
async fn attempt(server: &Server, limits: Limits) -> Result<AsyncPgConnection, (String, bool)> {
    let connected = server.config.connect(server.connector.clone()).await;
    let (client, driver) = connected.map_err(|error| (with_causes(&error), is_refusal(&error)))?;
    let connection = set_up(client, driver, limits).await;
    connection.map_err(|error| (with_causes(&error), false))
}

/// True if the server answered and will respond the same again.
fn is_refusal(error: &tokio_postgres::Error) -> bool {
    error.code().is_some_and(|code| {
        // It starts, stops or has no connection left (classes 57 and 53).
        !code.code().starts_with("57") && !code.code().starts_with("53")
    })
}

/// An error with its causes, in one line.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text.replace('\n', " ")
}

/// A connection outside of any pool, without time limits.
///
/// # Errors
/// [`PortError::Unavailable`].
pub(crate) async fn dedicated(server: &Server) -> Result<AsyncPgConnection, PortError> {
    let connected = tokio::time::timeout(CONNECT, connect(server, Limits::default())).await;
    let mut connection = match connected {
        Ok(Ok(connection)) => connection,
        Ok(Err(error)) => return Err(connection_error(&error)),
        Err(_) => return Err(PortError::Unavailable(NO_ANSWER.to_owned())),
    };
    connection
        // Work on this kind of connection may hold a transaction for hours without a statement, as a backup does.
        .batch_execute("SET idle_in_transaction_session_timeout = 0")
        .await
        .map_err(port_error)?;
    Ok(connection)
}

/// Converts an error of connecting. The reason goes to the log: callers learn neither hosts nor users.
pub(crate) fn connection_error(error: &ConnectionError) -> PortError {
    let text = error.to_string();
    tracing::warn!(error = text, "no connection to the database");
    if text.starts_with(NO_FREE_CONNECTION) {
        PortError::Exhausted(NO_FREE_CONNECTION.to_owned())
    } else {
        PortError::Unavailable(NO_ANSWER.to_owned())
    }
}
