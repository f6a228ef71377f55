//! Connections to the database.

#[cfg(test)]
mod tests;

use std::{
    ops::{Deref, DerefMut},
    panic::Location,
    pin::pin,
    sync::Arc,
    time::Duration,
};

use deadpool::managed::{Hook, HookError, Metrics, PoolError, QueueMode, TimeoutType, Timeouts};
use diesel_async::{
    AsyncPgConnection, SimpleAsyncConnection, pooled_connection::PoolError as ManagerError,
};
use futures::{FutureExt, StreamExt, future::BoxFuture};
use labdata_domain::ids::OrganizationId;
use labdata_limits::waiting;
use labdata_ports::{PortError, maintenance::ConnectionCounts};
use tokio::{
    runtime::Handle,
    sync::{Mutex, OwnedMappedMutexGuard, OwnedMutexGuard},
    task::JoinSet,
};
use tracing::{Instrument as _, Span};

use crate::database::{
    connect::{self, Limits, connection_error},
    errors::{NO_ANSWER, port_error},
    listen::{Channel, Listener, Subscription},
    loan::{Loan, Manager, PooledConnection},
    server::{CONNECT, InvalidDatabaseUrl, Server},
    shares::Shares,
};

type Pool = deadpool::managed::Pool<Manager>;

/// A connection. Its span ends when it is given back.
pub(crate) struct Connection {
    lent: Lent,
    _span: Span,
}

enum Lent {
    /// Lent by the pool, outside of any transaction.
    Pooled(Box<Loan>),
    /// In the transaction that the [`Database`] is bound to.
    Held(OwnedMappedMutexGuard<Option<Loan>, Loan>),
}

impl Connection {
    fn loan(&self) -> &Loan {
        match &self.lent {
            Lent::Pooled(loan) => loan,
            Lent::Held(loan) => loan,
        }
    }

    /// Begins to read rows while the server finds them. If [`Self::end_rows`] does not follow, because
    /// the request was dropped or has read enough, the statement is cancelled when the connection is
    /// given back.
    pub(crate) fn begin_rows(&self) {
        self.loan().begin_rows();
    }

    /// All rows were read.
    pub(crate) fn end_rows(&self) {
        self.loan().end_rows();
    }
}

impl Deref for Connection {
    type Target = AsyncPgConnection;

    fn deref(&self) -> &AsyncPgConnection {
        self.loan()
    }
}

impl DerefMut for Connection {
    fn deref_mut(&mut self) -> &mut AsyncPgConnection {
        match &mut self.lent {
            Lent::Pooled(loan) => loan,
            Lent::Held(loan) => loan,
        }
    }
}

/// Connection of a transaction that its caller ends. `None` after the end: repositories that were bound
/// to it fail instead of working outside of any transaction.
#[derive(Clone)]
pub(crate) struct HeldConnection(Arc<Mutex<Option<Loan>>>);

impl HeldConnection {
    /// Waits until no call of a bound repository uses the connection, and returns it.
    pub(crate) async fn take(&self) -> Option<Connection> {
        let loan = self.0.lock().await.take()?;
        Some(Connection {
            lent: Lent::Pooled(Box::new(loan)),
            _span: Span::none(),
        })
    }
}

/// A connection that rested this long is asked for a sign of life before it is lent again.
const TRUSTED_FOR: Duration = Duration::from_millis(500);

/// Time limit of the liveness check.
const PING: Duration = Duration::from_secs(2);

/// Number of uses before a connection is replaced: PostgreSQL retains what a session has
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
    /// Time that a statement takes; at least 1 ms.
    pub statement_timeout: Duration,
}

impl Default for DatabaseSettings {
    fn default() -> Self {
        Self {
            max_connections: 16,
            wait: Duration::from_secs(10),
            lock_timeout: Duration::from_secs(10),
            statement_timeout: Duration::from_mins(2),
        }
    }
}

/// The platform's database. Cheap to clone; all clones share one pool. Each call of a repository is a
/// transaction, unless the database that it was given is bound to one.
#[derive(Clone)]
pub struct Database {
    pool: Pool,
    /// Transaction that all work is part of, whose connection is used for it.
    held: Option<HeldConnection>,
    server: Arc<Server>,
    shares: Arc<Shares>,
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
    /// [`InvalidDatabaseUrl`].
    pub fn new(url: &str, settings: DatabaseSettings) -> Result<Self, InvalidDatabaseUrl> {
        let server = Arc::new(Server::parse(url)?);
        let runtime = Handle::current();
        let limits = Limits {
            lock: settings.lock_timeout,
            statement: settings.statement_timeout,
        };
        let manager = Manager::new(Arc::clone(&server), limits, runtime.clone());
        let pool = Pool::builder(manager)
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
            // The pool accepts time limits only with a runtime.
            .runtime(deadpool::Runtime::Tokio1)
            .build()
            .map_err(|error| InvalidDatabaseUrl::of_pool(&error))?;
        Ok(Self {
            pool,
            held: None,
            server,
            shares: Arc::new(Shares::new(settings.max_connections, settings.wait)),
            listener: Arc::default(),
            runtime,
        })
    }

    /// Waits until the server responds, for as long as `timeout`. The next use has a connection then.
    ///
    /// # Errors
    /// The cause, in one line with the server's address.
    pub async fn wait_until_reachable(&self, timeout: Duration) -> Result<(), String> {
        self.pool.manager().wait_for_server(timeout).await
    }

    /// Makes a connection ahead of its first use; a failure is left to that use.
    pub async fn connect_ahead(&self) {
        drop(self.pool.get().await);
    }

    /// The database as that organization may use it: it cannot hold all connections.
    pub(crate) fn of(&self, organization: OrganizationId) -> TenantDatabase<'_> {
        TenantDatabase {
            database: self,
            organization,
        }
    }

    /// The same database, with that connection for all work: transactions of repositories become
    /// savepoints of the one that the connection is in. Also returns a handle that ends it.
    pub(crate) fn bound_to(&self, connection: Connection) -> (Self, HeldConnection) {
        let held = match connection.lent {
            Lent::Pooled(loan) => HeldConnection(Arc::new(Mutex::new(Some(*loan)))),
            // A nested unit would commit the outer one.
            Lent::Held(_) => HeldConnection(Arc::default()),
        };
        let bound = Self {
            held: Some(held.clone()),
            ..self.clone()
        };
        (bound, held)
    }

    /// Returns true if all work is part of one transaction.
    pub(crate) fn is_bound(&self) -> bool {
        self.held.is_some()
    }

    /// A connection for the platform's own work, or that of the transaction which the database is bound
    /// to. It was alive a moment ago. A caller that holds one MUST NOT ask for another.
    ///
    /// # Errors
    /// [`PortError::Exhausted`] when all stay in use; [`PortError::Unavailable`] when none can be made.
    // Boxed: the compiler proves that it is `Send` here, and not once more for each of hundreds of callers.
    #[track_caller]
    pub(crate) fn connection(&self) -> BoxFuture<'_, Result<Connection, PortError>> {
        self.lend(None, use_of_connection(Location::caller()))
            .boxed()
    }

    async fn lend(
        &self,
        organization: Option<OrganizationId>,
        span: Span,
    ) -> Result<Connection, PortError> {
        let lent = match &self.held {
            Some(held) => Lent::Held(self.lend_held(held).await?),
            None => Lent::Pooled(Box::new(self.lend_pooled(organization).await?)),
        };
        Ok(Connection { lent, _span: span })
    }

    async fn lend_pooled(&self, organization: Option<OrganizationId>) -> Result<Loan, PortError> {
        // The organization's share first: a request that waits for it must not hold a connection.
        let permit = match organization {
            Some(organization) => Some(self.shares.enter(organization).await?),
            None => None,
        };
        let timeouts = self.pool.timeouts();
        let timeouts = Timeouts {
            wait: timeouts.wait.map(waiting::left),
            ..timeouts
        };
        let pooled = waiting::counted(self.pool.timeout_get(&timeouts)).await;
        Ok(Loan::new(pooled.map_err(pool_error)?, permit))
    }

    async fn lend_held(
        &self,
        held: &HeldConnection,
    ) -> Result<OwnedMappedMutexGuard<Option<Loan>, Loan>, PortError> {
        let wait = self.pool.timeouts().wait.unwrap_or(CONNECT);
        // Only a caller that breaks the rule of one connection waits this long: for itself.
        let guard = tokio::time::timeout(wait, Arc::clone(&held.0).lock_owned())
            .await
            .map_err(|_| PortError::Busy("the connection of this request is in use".to_owned()))?;
        OwnedMutexGuard::try_map(guard, Option::as_mut)
            .map_err(|_| PortError::Internal("the unit of work has ended".to_owned()))
    }

    /// Does work that awaits many responses of the database where connections are served: a thread
    /// of another runtime would have to be woken for each chunk of them. It ends when the caller is
    /// dropped.
    ///
    /// # Errors
    /// [`PortError::Internal`] when the work panics.
    pub(crate) async fn beside_connections<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, PortError> {
        // A `JoinSet` aborts its tasks when it is dropped; a `JoinHandle` would let them run.
        let mut tasks = JoinSet::new();
        tasks.spawn_on(waiting::carried(work).in_current_span(), &self.runtime);
        match tasks.join_next().await {
            Some(Ok(done)) => Ok(done),
            Some(Err(error)) => Err(PortError::Internal(error.to_string())),
            None => Err(PortError::Internal("a task was lost".to_owned())),
        }
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

    /// The server behind it.
    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    /// Subscribes to the channel's notifications from now on.
    pub(crate) fn listen(&self, channel: Channel) -> Subscription {
        let listener = &self.listener;
        Subscription(listener.subscribe(&self.server, &self.runtime, channel))
    }

    /// Subscribes to notifications about an execution, a version of a model or the events of an
    /// organization from now on.
    pub(crate) fn follow(&self, id: uuid::Uuid) -> Subscription {
        let listener = &self.listener;
        Subscription(listener.follow(&self.server, &self.runtime, id))
    }

    /// Opens a connection outside the pool, without time limits.
    ///
    /// # Errors
    /// [`PortError::Unavailable`].
    pub(crate) async fn dedicated(&self) -> Result<AsyncPgConnection, PortError> {
        connect::dedicated(&self.server).await
    }
}

/// The database as one organization may use it.
#[derive(Clone, Copy)]
pub(crate) struct TenantDatabase<'d> {
    database: &'d Database,
    organization: OrganizationId,
}

impl<'d> TenantDatabase<'d> {
    /// A connection of the organization's share, as [`Database::connection`].
    #[track_caller]
    pub(crate) fn connection(self) -> BoxFuture<'d, Result<Connection, PortError>> {
        let span = use_of_connection(Location::caller());
        self.database.lend(Some(self.organization), span).boxed()
    }
}

/// Span of a call of a repository: the wait for a connection, and the time that it is held. Its attribute is
/// the line that asks. It costs nothing unless the level is on.
fn use_of_connection(caller: &'static Location<'static>) -> Span {
    tracing::debug_span!("database", code = %caller)
}

/// Refuses a connection that has died: costs nothing for one in steady use, and one round trip for
/// one that has rested.
async fn check(
    connection: &mut PooledConnection,
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
        Ok(response) => {
            response.map_err(|error| HookError::Backend(ManagerError::QueryError(error)))
        }
        Err(_) => Err(HookError::Message("the connection does not respond".into())),
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
            PortError::Exhausted("all database connections are in use".to_owned())
        }
        PoolError::Backend(ManagerError::QueryError(error)) => port_error(error),
        PoolError::Backend(ManagerError::ConnectionError(error)) => connection_error(&error),
        other => {
            tracing::warn!(error = %other, "no connection to the database");
            PortError::Unavailable(NO_ANSWER.to_owned())
        }
    }
}
