//! Transactions begun and ended by hand, where one function both applies and judges.
//!
//! A connection whose transaction was left open (a cancelled request) is not used again: the pool
//! asks the transaction manager before it hands a connection out.

use diesel::result::Error;
use diesel_async::{AsyncConnection, AsyncPgConnection, TransactionManager};

type Manager = <AsyncPgConnection as AsyncConnection>::TransactionManager;

pub(crate) async fn begin(connection: &mut AsyncPgConnection) -> Result<(), Error> {
    Manager::begin_transaction(connection).await
}

pub(crate) async fn commit(connection: &mut AsyncPgConnection) -> Result<(), Error> {
    Manager::commit_transaction(connection).await
}

/// Rolls back. Where that fails the connection is broken, and the server has rolled back itself.
pub(crate) async fn rollback(connection: &mut AsyncPgConnection) {
    if let Err(error) = Manager::rollback_transaction(connection).await {
        tracing::debug!(%error, "rollback on a broken connection");
    }
}
