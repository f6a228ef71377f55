//! Transactions begun and ended by hand, where one function both applies and judges.
//!
//! A connection whose transaction was left open (a cancelled request) is not used again: the pool
//! asks the transaction manager before it hands a connection out.

use std::num::NonZeroU32;

use diesel::{connection::TransactionManagerStatus, result::Error};
use diesel_async::{AsyncConnection, AsyncPgConnection, SimpleAsyncConnection, TransactionManager};

use super::errors::{Fault, Kind, kind_of, outcome_unknown};

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

/// Commits. Where the connection breaks, the server may have committed before.
pub(crate) async fn commit(connection: &mut AsyncPgConnection) -> Result<(), Fault> {
    let is_outermost = depth(connection) == Some(1);
    match Manager::commit_transaction(connection).await {
        // Of a savepoint nothing is committed yet: the transaction around it is lost with it.
        Err(error) if is_outermost && kind_of(&error) == Kind::Broken => {
            Err(outcome_unknown(&error).into())
        }
        ended => ended.map_err(Fault::from),
    }
}

/// Rolls back. Where that fails the connection is broken, and the server has rolled back itself.
pub(crate) async fn rollback(connection: &mut AsyncPgConnection) {
    if let Err(error) = Manager::rollback_transaction(connection).await {
        tracing::debug!(%error, "rollback on a broken connection");
    }
}

/// Ends a transaction as its outcome demands.
pub(crate) async fn end<T>(
    connection: &mut AsyncPgConnection,
    outcome: Result<T, Fault>,
) -> Result<T, Fault> {
    match outcome {
        Ok(value) => {
            commit(connection).await?;
            Ok(value)
        }
        Err(fault) => {
            rollback(connection).await;
            Err(fault)
        }
    }
}

/// Returns true if the connection is in a transaction.
fn is_open(connection: &mut AsyncPgConnection) -> bool {
    match Manager::transaction_manager_status_mut(connection) {
        TransactionManagerStatus::Valid(status) => status.transaction_depth().is_some(),
        TransactionManagerStatus::InError => true,
    }
}

/// The number of transactions around the next statement, savepoints included.
fn depth(connection: &mut AsyncPgConnection) -> Option<u32> {
    match Manager::transaction_manager_status_mut(connection) {
        TransactionManagerStatus::Valid(status) => status.transaction_depth().map(NonZeroU32::get),
        TransactionManagerStatus::InError => None,
    }
}

#[cfg(test)]
mod tests {
    use labdata_ports::PortError;
    use labdata_test_database::TestDatabase;

    use super::*;
    use crate::database::pool::{Database, DatabaseSettings};

    /// A trigger that ends the session while it commits.
    const BREAKS_AT_COMMIT: &str = "CREATE TABLE public.fragile (a int); \
         CREATE FUNCTION public.break_off() RETURNS trigger LANGUAGE plpgsql AS \
         'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END'; \
         CREATE CONSTRAINT TRIGGER breaks AFTER INSERT ON public.fragile \
         DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.break_off()";

    #[tokio::test]
    async fn a_commit_during_which_the_connection_breaks_has_an_unknown_outcome() {
        let own = TestDatabase::new().await;
        let database = Database::new(own.url(), DatabaseSettings::default()).unwrap();
        let mut connection = database.connection().await.unwrap();
        connection.batch_execute(BREAKS_AT_COMMIT).await.unwrap();
        begin(&mut connection).await.unwrap();
        let insert = "INSERT INTO public.fragile VALUES (1)";
        connection.batch_execute(insert).await.unwrap();
        let error = PortError::from(commit(&mut connection).await.unwrap_err());
        assert!(matches!(error, PortError::OutcomeUnknown(_)), "{error}");
    }

    #[tokio::test]
    async fn a_commit_that_the_database_refuses_has_a_known_outcome() {
        let own = TestDatabase::new().await;
        let database = Database::new(own.url(), DatabaseSettings::default()).unwrap();
        let mut connection = database.connection().await.unwrap();
        let table = "CREATE TABLE public.late (a int UNIQUE DEFERRABLE INITIALLY DEFERRED)";
        connection.batch_execute(table).await.unwrap();
        begin(&mut connection).await.unwrap();
        let insert = "INSERT INTO public.late VALUES (1), (1)";
        connection.batch_execute(insert).await.unwrap();
        let fault = commit(&mut connection).await.unwrap_err();
        assert!(matches!(fault, Fault::Database(_)), "{fault:?}");
    }

    #[tokio::test]
    async fn a_connection_that_breaks_before_the_commit_has_changed_nothing() {
        let own = TestDatabase::new().await;
        let database = Database::new(own.url(), DatabaseSettings::default()).unwrap();
        let mut connection = database.connection().await.unwrap();
        begin(&mut connection).await.unwrap();
        let ends = "SELECT pg_terminate_backend(pg_backend_pid())";
        let error = connection.batch_execute(ends).await.unwrap_err();
        let error = PortError::from(Fault::from(error));
        assert!(matches!(error, PortError::Unavailable(_)), "{error}");
    }
}
