//! Transactions begun and ended by hand, where one function both applies and judges.
//!
//! A connection whose transaction was left open (a cancelled request) is not used again: the pool
//! asks the transaction manager before it hands a connection out.

use diesel::{connection::TransactionManagerStatus, result::Error};
use diesel_async::{AsyncConnection, AsyncPgConnection, SimpleAsyncConnection, TransactionManager};

type Manager = <AsyncPgConnection as AsyncConnection>::TransactionManager;

pub(crate) async fn begin(connection: &mut AsyncPgConnection) -> Result<(), Error> {
    Manager::begin_transaction(connection).await
}

/// Begins one with further statements in the same round trip: `also` follows `BEGIN;`.
pub(crate) async fn begin_with(
    connection: &mut AsyncPgConnection,
    also: &str,
) -> Result<(), Error> {
    // BEGIN in a transaction only warns; the manager makes a savepoint there.
    if is_open(connection) {
        begin(connection).await?;
        let done = connection.batch_execute(also).await;
        if done.is_err() {
            rollback(connection).await;
        }
        return done;
    }
    let begun = Manager::begin_transaction_sql(connection, &format!("BEGIN; {also}")).await;
    if begun.is_err() {
        // The transaction may have begun before the rest failed, which the manager cannot know.
        connection.batch_execute("ROLLBACK").await?;
    }
    begun
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

/// Returns true if the connection is in a transaction.
fn is_open(connection: &mut AsyncPgConnection) -> bool {
    match Manager::transaction_manager_status_mut(connection) {
        TransactionManagerStatus::Valid(status) => status.transaction_depth().is_some(),
        TransactionManagerStatus::InError => true,
    }
}
