//! Connections on loan from the pool. One that is given back in the middle of its work, because its
//! request was dropped, has its statement cancelled and is closed: the next request never waits for it.

use std::{
    ops::{Deref, DerefMut},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use deadpool::managed::{self, Metrics, Object, RecycleError, RecycleResult};
use diesel::{
    ConnectionError,
    connection::{Instrumentation, InstrumentationEvent},
};
use diesel_async::{
    AsyncConnection, AsyncPgConnection,
    pooled_connection::{PoolError, PoolableConnection},
};
use tokio::{
    runtime::Handle,
    task::JoinError,
    time::{Instant, timeout},
};

use crate::database::{
    connect::{self, Limits},
    server::Server,
    shares::Permit,
};

/// Time limit of a request to cancel a statement.
const CANCELLING: Duration = Duration::from_secs(5);

/// Age up to which a connection that was made ahead is handed out unchecked.
const FRESH: Duration = Duration::from_millis(500);

/// Makes the pool's connections.
pub(crate) struct Manager {
    pub(crate) server: Arc<Server>,
    pub(crate) limits: Limits,
    /// Runtime that serves the connections.
    pub(crate) runtime: Handle,
    /// The connection by which the server was found to respond, for the first that the pool makes.
    first: Mutex<Option<(AsyncPgConnection, Instant)>>,
}

impl Manager {
    pub(crate) fn new(server: Arc<Server>, limits: Limits, runtime: Handle) -> Self {
        Self {
            server,
            limits,
            runtime,
            first: Mutex::default(),
        }
    }

    /// Waits until the server responds, and stores the connection for the pool.
    ///
    /// # Errors
    /// As [`connect::wait_for`].
    pub(crate) async fn wait_for_server(&self, wait_limit: Duration) -> Result<(), String> {
        let (server, limits) = (Arc::clone(&self.server), self.limits);
        let waiting = async move { connect::wait_for(&server, limits, wait_limit).await };
        // As in `create`: the reader of the connection has to outlive the caller's runtime.
        let waited = self.runtime.spawn(waiting).await;
        let connection = waited.map_err(|error| error.to_string())??;
        *self.first.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((connection, Instant::now()));
        Ok(())
    }

    fn take_first(&self) -> Option<AsyncPgConnection> {
        let first = self.first.lock();
        let (connection, made) = first.unwrap_or_else(PoisonError::into_inner).take()?;
        (made.elapsed() < FRESH).then_some(connection)
    }
}

/// A connection of the pool.
pub(crate) struct PooledConnection {
    connection: AsyncPgConnection,
    /// Number of statements that were begun and not finished.
    unfinished: Arc<AtomicUsize>,
    /// True once it was given back in the middle of its work.
    is_abandoned: AtomicBool,
}

/// Counts the statements of a connection. A statement whose future is dropped never finishes.
struct StatementCounter(Arc<AtomicUsize>);

impl Instrumentation for StatementCounter {
    fn on_connection_event(&mut self, event: InstrumentationEvent<'_>) {
        match event {
            InstrumentationEvent::StartQuery { .. } => begin(&self.0),
            // Comes with the first rows, however many follow.
            InstrumentationEvent::FinishQuery { .. } => end(&self.0),
            _ => {}
        }
    }
}

fn begin(unfinished: &AtomicUsize) {
    unfinished.fetch_add(1, Ordering::Relaxed);
}

fn end(unfinished: &AtomicUsize) {
    let less = |count: usize| Some(count.saturating_sub(1));
    let _ = unfinished.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
}

impl PooledConnection {
    fn new(mut connection: AsyncPgConnection) -> Self {
        let unfinished = Arc::<AtomicUsize>::default();
        connection.set_instrumentation(StatementCounter(Arc::clone(&unfinished)));
        Self {
            connection,
            unfinished,
            is_abandoned: AtomicBool::new(false),
        }
    }

    /// True between statements and outside of any transaction.
    fn is_idle(&mut self) -> bool {
        self.unfinished.load(Ordering::Relaxed) == 0 && !self.connection.is_broken()
    }
}

impl Deref for PooledConnection {
    type Target = AsyncPgConnection;

    fn deref(&self) -> &AsyncPgConnection {
        &self.connection
    }
}

impl DerefMut for PooledConnection {
    fn deref_mut(&mut self) -> &mut AsyncPgConnection {
        &mut self.connection
    }
}

impl managed::Manager for Manager {
    type Type = PooledConnection;
    type Error = PoolError;

    async fn create(&self) -> Result<PooledConnection, PoolError> {
        if let Some(connection) = self.take_first() {
            return Ok(PooledConnection::new(connection));
        }
        let (server, limits) = (Arc::clone(&self.server), self.limits);
        let connecting = async move { connect::connect(&server, limits).await };
        // The driver spawns its reader on the current runtime, which has to outlive the caller's.
        let connected = self.runtime.spawn(connecting).await;
        let connected = connected.unwrap_or_else(|error| Err(lost(&error)));
        connected
            .map(PooledConnection::new)
            .map_err(PoolError::ConnectionError)
    }

    async fn recycle(
        &self,
        connection: &mut PooledConnection,
        _: &Metrics,
    ) -> RecycleResult<PoolError> {
        if std::thread::panicking() || !connection.is_idle() {
            return Err(RecycleError::message("the connection is at work"));
        }
        Ok(())
    }
}

/// The task that connects has panicked, or its runtime no longer exists.
fn lost(error: &JoinError) -> ConnectionError {
    ConnectionError::BadConnection(error.to_string())
}

/// A connection on loan, given back when dropped.
pub(crate) struct Loan {
    connection: Object<Manager>,
    /// The organization's permit to hold it.
    permit: Option<Permit>,
}

impl Loan {
    pub(crate) fn new(connection: Object<Manager>, permit: Option<Permit>) -> Self {
        Self { connection, permit }
    }

    /// Counts rows on their way as an unfinished statement, until [`Self::end_rows`].
    pub(crate) fn begin_rows(&self) {
        begin(&self.connection.unfinished);
    }

    pub(crate) fn end_rows(&self) {
        end(&self.connection.unfinished);
    }
}

impl Deref for Loan {
    type Target = AsyncPgConnection;

    fn deref(&self) -> &AsyncPgConnection {
        &self.connection
    }
}

impl DerefMut for Loan {
    fn deref_mut(&mut self) -> &mut AsyncPgConnection {
        &mut self.connection
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        if self.connection.is_idle() {
            return;
        }
        // The object returns to the pool after this function; the mark lets the task find it there.
        self.connection.is_abandoned.store(true, Ordering::Relaxed);
        // The permit moves to the task: the organization's place is free once the statement has ended.
        let (token, permit) = (self.connection.cancel_token(), self.permit.take());
        // Without its pool the connection is closed when the object is dropped.
        let Some(pool) = Object::pool(&self.connection) else {
            return;
        };
        let manager = pool.manager();
        let (server, runtime) = (Arc::clone(&manager.server), manager.runtime.clone());
        runtime.spawn(async move {
            let cancelling = token.cancel_query(server.connector.clone());
            // A cancel request is a separate connection, which may hang like any other.
            match timeout(CANCELLING, cancelling).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    tracing::warn!(%error, "a statement without a caller could not be cancelled");
                }
                Err(_) => tracing::warn!("a statement without a caller could not be cancelled"),
            }
            // Closes the connection, which rolls its transaction back, unless the pool did already.
            pool.retain(|connection, _| !connection.is_abandoned.load(Ordering::Relaxed));
            drop(permit);
        });
    }
}
