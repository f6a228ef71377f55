//! Laboratories with tables, on PostgreSQL.

use labdata_postgres::DatabaseSettings;

use crate::on_postgres::OnPostgres;

/// A server with the tables of the tests.
pub(super) async fn lab() -> OnPostgres {
    OnPostgres::with_tables(DatabaseSettings::default()).await
}
