//! Connections to the database.
//!
//! Connections of a `DATABASE_URL` are not encrypted: `sslmode=require` is refused by the driver.
//! Put the database on the same host or in a trusted network, or a TLS tunnel between.

use std::{
    ops::{Deref, DerefMut},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use deadpool::managed::{
    Hook, HookError, Metrics, Object, PoolError, QueueMode, TimeoutType, Timeouts,
};
use diesel::ConnectionError;
use diesel_async::{
    AsyncPgConnection, SimpleAsyncConnection,
    pooled_connection::{
        AsyncDieselConnectionManager, ManagerConfig, PoolError as ManagerError, RecyclingMethod,
    },
};
use futures::{FutureExt, StreamExt};
use labdata_ports::{PortError, operations::ConnectionCounts};
use tokio::{
    runtime::Handle,
    sync::{Mutex, OwnedMutexGuard, watch},
    task::{JoinError, JoinSet},
    task_local,
};
use tracing::Instrument as _;

use crate::database::{
    connect::{self, CONNECT, connection_error},
    errors::{NO_ANSWER, port_error},
    listen::{Channel, Listener},
};

type Manager = AsyncDieselConnectionManager<AsyncPgConnection>;
type Pool = deadpool::managed::Pool<Manager>;

/// A connection, outside of any transaction or in that of the unit of work which the task is part
/// of.
pub(crate) enum Connection {
    /// Lent by the pool.
    Pooled(Box<Object<Manager>>),
    /// Connection of the unit of work, while the caller holds it.
    Shared(OwnedMutexGuard<Object<Manager>>),
}

impl Deref for Connection {
    type Target = AsyncPgConnection;

    fn deref(&self) -> &AsyncPgConnection {
        match self {
            Self::Pooled(connection) => connection,
            Self::Shared(connection) => connection,
        }
    }
}

impl DerefMut for Connection {
    fn deref_mut(&mut self) -> &mut AsyncPgConnection {
        match self {
            Self::Pooled(connection) => connection,
            Self::Shared(connection) => connection,
        }
    }
}

task_local! {
    /// The connection that all of a task's work goes through, and the URL of its database.
    static UNIT_OF_WORK: (Arc<Mutex<Object<Manager>>>, String);
}

/// A connection that rested this long is asked for a sign of life before it is lent again.
const TRUSTED_FOR: Duration = Duration::from_millis(500);

/// Time limit of the liveness check.
const PING: Duration = Duration::from_secs(2);

/// Number of uses before a connection is replaced: PostgreSQL keeps what a session has
/// prepared and looked up until it ends, and organizations and their tables may be many.
const MAX_USES: usize = 2_000;

/// Time that [`Database::probe`] waits for a free connection.
const PROBE_WAIT: Duration = Duration::from_secs(2);

/// Settings of the database connections.
#[derive(Clone, Copy, Debug)]
pub struct DatabaseSettings {
    /// The most connections that this process opens.
    pub max_connections: usize,
    /// Time that a request waits for a free connection before it fails as busy.
    pub wait: Duration,
    /// Time that a statement waits for locked rows (contract §3); at least 1 ms.
    pub lock_timeout: Duration,
}

impl Default for DatabaseSettings {
    fn default() -> Self {
        Self {
            max_connections: 16,
            wait: Duration::from_secs(10),
            lock_timeout: Duration::from_secs(10),
        }
    }
}

/// The platform's database. Cheap to clone; all clones share one pool.
#[derive(Clone)]
pub struct Database {
    pool: Pool,
    url: String,
    listener: Arc<Listener>,
    /// Runtime that serves the connections, independent of the caller's runtime.
    runtime: Handle,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Never the URL: it may hold a password.
        f.debug_struct("Database")
            .field("status", &self.pool.status())
            .finish_non_exhaustive()
    }
}

impl Database {
    /// Prepares a pool; connections are made when they are needed. The URL is one that libpq
    /// reads; a percent-encoded path as its host is the directory of a Unix socket.
    ///
    /// The runtime that this is called in serves the connections, also for tasks of others, and must
    /// last as long.
    ///
    /// # Panics
    /// Outside of a runtime.
    ///
    /// # Errors
    /// [`PortError::Internal`] when the pool cannot be built.
    pub fn new(url: &str, settings: DatabaseSettings) -> Result<Self, PortError> {
        let mut config = ManagerConfig::default();
        config.recycling_method = RecyclingMethod::Fast;
        let lock_timeout = settings.lock_timeout;
        let runtime = Handle::current();
        let connecting = runtime.clone();
        config.custom_setup = Box::new(move |url| {
            let url = url.to_owned();
            let connected =
                connecting.spawn(async move { connect::connect(&url, lock_timeout).await });
            connected
                .map(|connected| connected.unwrap_or_else(|error| Err(gone(&error))))
                .boxed()
        });
        let pool = Pool::builder(Manager::new_with_config(url, config))
            .max_size(settings.max_connections)
            .timeouts(Timeouts {
                wait: Some(settings.wait),
                create: Some(CONNECT),
                recycle: Some(PING),
            })
            // The warmest connection first: it has its statements prepared, and one that a
            // cancelled request left in a transaction is found and closed by the next request.
            .queue_mode(QueueMode::Lifo)
            .post_recycle(Hook::async_fn(|connection, metrics| {
                check(connection, metrics).boxed()
            }))
            .runtime(deadpool::Runtime::Tokio1)
            .build()
            .map_err(|error| PortError::Internal(error.to_string()))?;
        Ok(Self {
            pool,
            url: url.to_owned(),
            listener: Arc::default(),
            runtime,
        })
    }

    /// A connection that was alive a moment ago; within [`Self::unit_of_work`] that of the unit.
    /// A caller that holds one MUST NOT ask for another.
    ///
    /// # Errors
    /// [`PortError::Busy`] when all stay in use; [`PortError::Unavailable`] when none can be made.
    pub(crate) async fn connection(&self) -> Result<Connection, PortError> {
        let shared = UNIT_OF_WORK
            .try_with(|(connection, url)| (*url == self.url).then(|| Arc::clone(connection)));
        let Some(shared) = shared.ok().flatten() else {
            let pooled = self.pool.get().await.map_err(pool_error)?;
            return Ok(Connection::Pooled(Box::new(pooled)));
        };
        let wait = self.pool.timeouts().wait.unwrap_or(CONNECT);
        match tokio::time::timeout(wait, shared.lock_owned()).await {
            Ok(connection) => Ok(Connection::Shared(connection)),
            Err(_) => Err(PortError::Busy(
                "the connection of this request is in use".to_owned(),
            )),
        }
    }

    /// Does work that awaits many answers of the database where connections are served: a thread
    /// of another runtime would have to be woken for each piece of them. It ends when the caller is
    /// dropped. Within a unit of work it is done here, as that is the task's.
    ///
    /// # Errors
    /// [`PortError::Internal`] when the work panics.
    pub(crate) async fn beside_connections<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, PortError> {
        if self.is_in_unit_of_work() {
            return Ok(work.await);
        }
        let mut tasks = JoinSet::new();
        tasks.spawn_on(work.in_current_span(), &self.runtime);
        match tasks.join_next().await {
            Some(Ok(done)) => Ok(done),
            Some(Err(error)) => Err(PortError::Internal(error.to_string())),
            None => Err(PortError::Internal("a task was lost".to_owned())),
        }
    }

    /// Returns true if the task is part of a unit of work, and so must do all its work itself.
    pub(crate) fn is_in_unit_of_work(&self) -> bool {
        UNIT_OF_WORK
            .try_with(|(_, url)| *url == self.url)
            .unwrap_or_default()
    }

    /// Runs work on one connection, across all parts of this adapter that it calls: their
    /// transactions become savepoints of the one that the connection is in. Returns the connection
    /// too.
    pub(crate) async fn unit_of_work<T>(
        &self,
        connection: Connection,
        work: impl Future<Output = T>,
    ) -> (T, Connection) {
        let connection = match connection {
            Connection::Pooled(connection) => *connection,
            // Already part of one.
            shared @ Connection::Shared(_) => return (work.await, shared),
        };
        let shared = Arc::new(Mutex::new(connection));
        let unit = (Arc::clone(&shared), self.url.clone());
        let done = UNIT_OF_WORK.scope(unit, work).await;
        (done, Connection::Shared(shared.lock_owned().await))
    }

    /// Makes a round trip to the database.
    ///
    /// # Errors
    /// As for every use of the database.
    pub async fn probe(&self) -> Result<(), PortError> {
        let timeouts = Timeouts {
            wait: Some(PROBE_WAIT),
            ..self.pool.timeouts()
        };
        let mut connection = self.pool.timeout_get(&timeouts).await.map_err(pool_error)?;
        ping(&mut connection).await.map_err(port_error)
    }

    /// Counts the connections of this process.
    pub(crate) fn connections(&self) -> ConnectionCounts {
        let status = self.pool.status();
        ConnectionCounts {
            active: status.size.saturating_sub(status.available),
            idle: status.available,
            waiting: status.waiting,
        }
    }

    /// Connection parameters, including the password.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Subscribes to the channel's notifications from now on.
    pub(crate) fn listen(&self, channel: Channel) -> watch::Receiver<u64> {
        self.listener.subscribe(&self.url, channel)
    }

    /// Opens a connection outside the pool, without a limit on lock waits.
    ///
    /// # Errors
    /// [`PortError::Unavailable`].
    pub(crate) async fn dedicated(&self) -> Result<AsyncPgConnection, PortError> {
        connect::dedicated(&self.url).await
    }
}

/// The task that connects has panicked, or its runtime is gone.
fn gone(error: &JoinError) -> ConnectionError {
    ConnectionError::BadConnection(error.to_string())
}

/// Refuses a connection that has died: costs nothing for one in steady use, and one round trip for
/// one that has rested.
async fn check(
    connection: &mut AsyncPgConnection,
    metrics: &Metrics,
) -> Result<(), HookError<ManagerError>> {
    if is_closed(connection) {
        return Err(HookError::Message("the connection was closed".into()));
    }
    if metrics.recycle_count >= MAX_USES {
        return Err(HookError::Message(
            "the connection was used often enough".into(),
        ));
    }
    if metrics.last_used() < TRUSTED_FOR {
        return Ok(());
    }
    match tokio::time::timeout(PING, ping(connection)).await {
        Ok(answer) => answer.map_err(|error| HookError::Backend(ManagerError::QueryError(error))),
        Err(_) => Err(HookError::Message("the connection does not answer".into())),
    }
}

/// Returns true if the task that reads from the connection has ended: it closes the stream of
/// notifications then. Makes no request.
fn is_closed(connection: &mut AsyncPgConnection) -> bool {
    let mut notifications = pin!(connection.notifications_stream());
    loop {
        match notifications.next().now_or_never() {
            None => return false,
            Some(Some(Ok(_))) => {}
            Some(_) => return true,
        }
    }
}

/// One round trip: nothing is prepared.
async fn ping(connection: &mut AsyncPgConnection) -> Result<(), diesel::result::Error> {
    connection.batch_execute("SELECT 1").await
}

fn pool_error(error: PoolError<ManagerError>) -> PortError {
    match error {
        PoolError::Timeout(TimeoutType::Wait) => {
            PortError::Busy("all database connections are in use".to_owned())
        }
        PoolError::Backend(ManagerError::QueryError(error)) => port_error(error),
        PoolError::Backend(ManagerError::ConnectionError(error)) => connection_error(&error),
        other => {
            tracing::warn!(error = %other, "no connection to the database");
            PortError::Unavailable(NO_ANSWER.to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use diesel::{QueryableByName, sql_types::Text};
    use diesel_async::RunQueryDsl;
    use labdata_test_database::TestDatabase;

    use super::*;
    use crate::database::transaction;

    #[derive(QueryableByName)]
    struct Shown {
        #[diesel(sql_type = Text)]
        shown: String,
    }

    async fn ask(connection: &mut AsyncPgConnection, query: &str) -> String {
        let query = diesel::sql_query(format!("SELECT ({query})::text AS shown"));
        query
            .get_result::<Shown>(connection)
            .await
            .expect("an answer")
            .shown
    }

    fn pool(own: &TestDatabase, max_connections: usize, wait: Duration) -> Database {
        let settings = DatabaseSettings {
            max_connections,
            wait,
            ..DatabaseSettings::default()
        };
        Database::new(own.url(), settings).expect("a pool")
    }

    #[tokio::test]
    async fn every_connection_is_set_up() {
        let own = TestDatabase::new().await;
        let database = pool(&own, 1, Duration::from_secs(1));
        let mut connection = database.connection().await.expect("a connection");
        for (setting, value) in [
            ("application_name", "labdata"),
            ("TimeZone", "UTC"),
            ("standard_conforming_strings", "on"),
            ("search_path", "pg_catalog"),
            ("lock_timeout", "10s"),
            ("idle_in_transaction_session_timeout", "1min"),
            ("lc_messages", "C"),
        ] {
            let query = format!("SELECT current_setting('{setting}')");
            assert_eq!(ask(&mut connection, &query).await, value, "{setting}");
        }
        let mut alone = database.dedicated().await.expect("a connection of its own");
        assert_eq!(
            ask(&mut alone, "SELECT current_setting('lock_timeout')").await,
            "0"
        );
    }

    #[tokio::test]
    async fn a_caller_that_waits_too_long_for_a_connection_gets_busy() {
        let own = TestDatabase::new().await;
        let database = pool(&own, 1, Duration::from_millis(50));
        let held = database.connection().await.expect("the only connection");
        let error = database.connection().await.map(drop);
        assert!(matches!(error, Err(PortError::Busy(_))), "{error:?}");
        drop(held);
        assert!(database.connection().await.is_ok());
    }

    #[tokio::test]
    async fn a_connection_that_was_left_in_a_transaction_is_closed_not_lent() {
        let own = TestDatabase::new().await;
        let database = pool(&own, 1, Duration::from_secs(10));
        let mut left = database.connection().await.expect("a connection");
        let first = ask(&mut left, "SELECT pg_backend_pid()").await;
        transaction::begin(&mut left).await.expect("a transaction");
        drop(left);
        let mut next = database.connection().await.expect("another connection");
        assert_ne!(ask(&mut next, "SELECT pg_backend_pid()").await, first);
    }

    #[tokio::test]
    async fn a_healthy_connection_is_lent_again_after_a_rest() {
        let own = TestDatabase::new().await;
        let database = pool(&own, 4, Duration::from_secs(10));
        let mut connection = database.connection().await.expect("a connection");
        let first = ask(&mut connection, "SELECT pg_backend_pid()").await;
        drop(connection);
        tokio::time::sleep(TRUSTED_FOR * 2).await;
        let mut again = database.connection().await.expect("a connection");
        assert_eq!(ask(&mut again, "SELECT pg_backend_pid()").await, first);
    }
}
