//! Units of work: transactions that their caller holds.

use std::sync::Arc;

use async_trait::async_trait;
use labdata_domain::{idempotency::StoredResponse, ids::OrganizationId};
use labdata_ports::{
    PortError, Repositories,
    idempotency::{IdempotentRequest, UnitOfWork, Units},
};

use super::{
    duplicates::Turn,
    errors::{Fault, port_error},
    pool::{Connection, Database, HeldConnection},
    stored_responses, transaction,
};

/// Makes the repositories that take part in a unit of work.
pub(crate) trait BindRepositories: Send + Sync {
    /// The database, bound to no transaction.
    fn database(&self) -> &Database;

    /// The repositories within the transaction that `database` is bound to.
    fn bound_to(&self, database: &Database) -> Repositories;
}

/// Units of work of a store.
pub(crate) struct PgUnits {
    store: Arc<dyn BindRepositories>,
    /// The database of the store, or that of the unit around.
    database: Database,
}

impl PgUnits {
    /// Units of work of that store, on that database.
    pub(crate) fn new(store: Arc<dyn BindRepositories>, database: Database) -> Self {
        Self { store, database }
    }
}

#[async_trait]
impl Units for PgUnits {
    async fn begin(&self, organization: OrganizationId) -> Result<Box<dyn UnitOfWork>, PortError> {
        if self.database.is_bound() {
            // No savepoint: where a part of a request fails, all of it does.
            return Ok(Box::new(PgPartOfUnit {
                // Shares the transaction of the unit around: its changes are seen here, and end with it.
                store: Arc::clone(&self.store),
                database: self.database.clone(),
            }));
        }
        let mut connection = self.database.of(organization).connection().await?;
        transaction::begin(&mut connection)
            .await
            .map_err(port_error)?;
        Ok(Box::new(PgUnit::of(&self.store, connection)))
    }
}

/// A transaction. A connection that is dropped within it is closed by the pool, which rolls it back.
pub(super) struct PgUnit {
    store: Arc<dyn BindRepositories>,
    /// The database of the store, bound to `connection`.
    database: Database,
    connection: HeldConnection,
    /// The request whose response is stored with the changes, and its turn.
    request: Option<(IdempotentRequest, Turn)>,
}

impl PgUnit {
    /// The unit of a connection that is in a transaction.
    fn of(store: &Arc<dyn BindRepositories>, connection: Connection) -> Self {
        let (database, connection) = store.database().bound_to(connection);
        Self {
            store: Arc::clone(store),
            database,
            connection,
            request: None,
        }
    }

    /// The same, for a request that bears an idempotency key.
    pub(super) fn of_request(
        store: &Arc<dyn BindRepositories>,
        connection: Connection,
        request: IdempotentRequest,
        turn: Turn,
    ) -> Self {
        Self {
            request: Some((request, turn)),
            ..Self::of(store, connection)
        }
    }
}

#[async_trait]
impl UnitOfWork for PgUnit {
    fn repositories(&self) -> Repositories {
        self.store.bound_to(&self.database)
    }

    async fn commit(&self, response: Option<&StoredResponse>) -> Result<(), PortError> {
        let Some(mut connection) = self.connection.take().await else {
            return Err(PortError::Internal("the unit of work has ended".to_owned()));
        };
        let stored = match (response, &self.request) {
            (Some(response), Some((request, _))) => {
                stored_responses::store(&mut connection, request, response).await
            }
            _ => Ok(()),
        };
        Ok(transaction::end(&mut connection, stored.map_err(Fault::from)).await?)
    }

    async fn roll_back(&self) {
        if let Some(mut connection) = self.connection.take().await {
            transaction::rollback(&mut connection).await;
        }
    }
}

/// A unit of work within another, with which it ends.
struct PgPartOfUnit {
    store: Arc<dyn BindRepositories>,
    database: Database,
}

#[async_trait]
impl UnitOfWork for PgPartOfUnit {
    fn repositories(&self) -> Repositories {
        self.store.bound_to(&self.database)
    }

    async fn commit(&self, _: Option<&StoredResponse>) -> Result<(), PortError> {
        Ok(())
    }

    async fn roll_back(&self) {}
}
