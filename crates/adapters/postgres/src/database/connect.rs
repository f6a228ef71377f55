//! Connecting to the database, and the settings of every connection.

use std::time::Duration;

use diesel::ConnectionError;
use diesel_async::{AsyncConnection, AsyncPgConnection, SimpleAsyncConnection};
use labdata_ports::PortError;

use crate::database::errors::{NO_ANSWER, port_error};

/// Timeout of connecting.
pub(crate) const CONNECT: Duration = Duration::from_secs(5);

/// Settings of every connection, besides the lock timeout. Messages are in English where the role may
/// choose, because the driver distinguishes some errors by their text only. Names are never looked up
/// in a schema that is not named. Statements are short: compiling one takes longer than running it.
const SETUP: &str = "SET application_name = 'labdata'; \
     SET timezone = 'UTC'; \
     SET standard_conforming_strings = on; \
     SET search_path = pg_catalog; \
     SET idle_in_transaction_session_timeout = '60s'; \
     SET jit = off; \
     SET client_min_messages = warning; \
     DO $$ BEGIN SET lc_messages = 'C'; EXCEPTION WHEN insufficient_privilege THEN NULL; END $$";

/// Connects and applies the settings. A lock timeout of zero is none.
pub(crate) async fn connect(
    url: &str,
    lock_timeout: Duration,
) -> Result<AsyncPgConnection, ConnectionError> {
    let mut connection = AsyncPgConnection::establish(url).await?;
    let setup = format!("SET lock_timeout = {}; {SETUP}", lock_timeout.as_millis());
    connection
        .batch_execute(&setup)
        .await
        .map_err(ConnectionError::CouldntSetupConfiguration)?;
    Ok(connection)
}

/// A connection outside of any pool, without a lock timeout.
///
/// # Errors
/// [`PortError::Unavailable`].
pub(crate) async fn dedicated(url: &str) -> Result<AsyncPgConnection, PortError> {
    let connected = tokio::time::timeout(CONNECT, connect(url, Duration::ZERO)).await;
    let mut connection = match connected {
        Ok(Ok(connection)) => connection,
        Ok(Err(error)) => return Err(connection_error(&error)),
        Err(_) => return Err(PortError::Unavailable(NO_ANSWER.to_owned())),
    };
    connection
        .batch_execute("SET idle_in_transaction_session_timeout = 0")
        .await
        .map_err(port_error)?;
    Ok(connection)
}

/// Converts an error of connecting. The reason goes to the log: callers learn neither hosts nor users.
pub(crate) fn connection_error(error: &ConnectionError) -> PortError {
    let text = error.to_string();
    tracing::warn!(error = text, "no connection to the database");
    if text.contains("too many clients") || text.contains("remaining connection slots") {
        PortError::Busy("the database has no free connection".to_owned())
    } else {
        PortError::Unavailable(NO_ANSWER.to_owned())
    }
}
