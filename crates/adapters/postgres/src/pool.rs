//! Connections to the database.

use std::time::Duration;

use deadpool::managed::{Object, PoolError, Timeouts};
use diesel_async::{
    AsyncConnection, AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection,
    pooled_connection::{AsyncDieselConnectionManager, ManagerConfig, PoolError as ManagerError},
};
use futures::FutureExt;
use labdata_ports::PortError;

use crate::data::port_error;

/// A connection lent by the pool.
pub(crate) type Connection = Object<AsyncDieselConnectionManager<AsyncPgConnection>>;

type Pool = deadpool::managed::Pool<AsyncDieselConnectionManager<AsyncPgConnection>>;

/// How long a request waits for a free connection, and for one to be made.
const WAIT: Duration = Duration::from_secs(10);

/// What every connection is set to. Writes wait at most 10 s for rows that others hold
/// (contract §3).
const SETUP: &str = "SET timezone = 'UTC'; SET application_name = 'labdata'; SET lock_timeout = '10s'; \
     SET idle_in_transaction_session_timeout = '60s'; SET standard_conforming_strings = on; \
     SET client_min_messages = warning";

/// How the database is used.
#[derive(Clone, Copy, Debug)]
pub struct DatabaseSettings {
    /// The most connections that this process opens.
    pub max_connections: usize,
}

impl Default for DatabaseSettings {
    fn default() -> Self {
        Self { max_connections: 16 }
    }
}

/// The platform's database. Cheap to clone; all clones share one pool.
#[derive(Clone)]
pub struct Database {
    pool: Pool,
    url: String,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Never the URL: it may hold a password.
        f.debug_struct("Database").field("status", &self.pool.status()).finish_non_exhaustive()
    }
}

impl Database {
    /// Prepares a pool; connections are made when they are needed.
    ///
    /// # Errors
    /// [`PortError::Internal`] when the pool cannot be built.
    pub fn new(url: &str, settings: DatabaseSettings) -> Result<Self, PortError> {
        let mut config = ManagerConfig::default();
        config.custom_setup = Box::new(|url| {
            async move {
                let mut connection = AsyncPgConnection::establish(url).await?;
                connection
                    .batch_execute(SETUP)
                    .await
                    .map_err(diesel::ConnectionError::CouldntSetupConfiguration)?;
                Ok(connection)
            }
            .boxed()
        });
        let manager = AsyncDieselConnectionManager::new_with_config(url, config);
        let pool = Pool::builder(manager)
            .max_size(settings.max_connections)
            .timeouts(Timeouts { wait: Some(WAIT), create: Some(WAIT), recycle: Some(WAIT) })
            .runtime(deadpool::Runtime::Tokio1)
            .build()
            .map_err(|error| PortError::Internal(error.to_string()))?;
        Ok(Self { pool, url: url.to_owned() })
    }

    /// A connection; waits at most 10 s for one.
    ///
    /// # Errors
    /// [`PortError::Busy`] when all stay in use; [`PortError::Unavailable`] when none can be made.
    pub(crate) async fn connection(&self) -> Result<Connection, PortError> {
        self.pool.get().await.map_err(|error| match error {
            PoolError::Timeout(deadpool::managed::TimeoutType::Wait) => {
                PortError::Busy("all database connections are in use".to_owned())
            }
            PoolError::Backend(ManagerError::QueryError(error)) => port_error(error),
            PoolError::Backend(ManagerError::ConnectionError(error)) => {
                tracing::warn!(%error, "no connection to the database");
                PortError::Unavailable("the database does not answer".to_owned())
            }
            other => {
                tracing::warn!(error = %other, "no connection to the database");
                PortError::Unavailable("the database does not answer".to_owned())
            }
        })
    }

    /// Asks the database for a sign of life.
    ///
    /// # Errors
    /// As for every use of the database.
    pub async fn probe(&self) -> Result<(), PortError> {
        let mut connection = self.connection().await?;
        diesel::sql_query("SELECT 1").execute(&mut connection).await.map_err(port_error)?;
        Ok(())
    }

    /// Where the database is. Holds credentials: never for a log.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}
