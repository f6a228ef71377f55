//! The trigram index of file searches. It needs the extension `pg_trgm`, so it is not part of the
//! migrations.

use diesel::{QueryableByName, result::Error as DieselError, sql_types::Text};
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use labdata_ports::PortError;

use crate::database::{
    errors::{is_refusal, port_error},
    migrate::lock,
    pool::Database,
    relation::exists,
};

/// The month of an upload, as the index has it.
pub(super) const MONTH: &str = "date_trunc('month', uploaded_at AT TIME ZONE 'UTC')";

/// Name of the index.
const INDEX: &str = "labdata.file_search_idx";

/// Most kilobytes of new paths that PostgreSQL holds in a list before it merges them into the index. Each
/// search reads the whole list.
const PENDING: u32 = 128;

/// The way in which files are searched by a part of their path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileSearch {
    /// By the trigram index.
    Indexed,
    /// By reading the list from its newest file on.
    Walk {
        /// PostgreSQL's message on why the index cannot be created.
        reason: String,
    },
}

/// Creates the trigram index, and the extension that it needs, unless it exists. Blocks uploads
/// while it is built, about 10 s for a million files. Racing servers wait for each other.
///
/// # Errors
/// [`PortError::Unavailable`] when the database does not respond.
pub async fn prepare_file_search(database: &Database) -> Result<FileSearch, PortError> {
    let found = exists(&mut *database.connection().await?, INDEX).await;
    if found.map_err(port_error)? {
        return Ok(FileSearch::Indexed);
    }
    // Without time limits, which the index of many files would exceed.
    let mut connection = database.dedicated().await?;
    match create_if_missing(&mut connection).await {
        Ok(()) => Ok(FileSearch::Indexed),
        Err(DieselError::DatabaseError(kind, response)) => {
            // A managed server may forbid the extension: that costs speed, and must not stop the start.
            let reason = response.message().to_owned();
            let error = DieselError::DatabaseError(kind, response);
            if is_refusal(&error) {
                Ok(FileSearch::Walk { reason })
            } else {
                Err(port_error(error))
            }
        }
        Err(error) => Err(port_error(error)),
    }
}

#[derive(QueryableByName)]
struct Schema {
    #[diesel(sql_type = Text)]
    schema: String,
}

async fn create_if_missing(connection: &mut AsyncPgConnection) -> Result<(), DieselError> {
    // `CREATE … IF NOT EXISTS` of two servers at once can fail on the catalog's unique index.
    lock(connection).await?;
    if exists(connection, INDEX).await? {
        return Ok(());
    }
    connection
        .batch_execute("CREATE EXTENSION IF NOT EXISTS pg_trgm SCHEMA labdata")
        .await?;
    // Someone else may have created it, in another schema.
    let Schema { schema } = diesel::sql_query(
        "SELECT quote_ident(nspname) AS schema FROM pg_extension \
         JOIN pg_namespace n ON n.oid = extnamespace WHERE extname = 'pg_trgm'",
    )
    .get_result(connection)
    .await?;
    connection
        // Not CONCURRENTLY: a build that breaks off would leave an invalid index of that name.
        .batch_execute(&format!(
            "CREATE INDEX file_search_idx ON labdata.file USING gin (\
                 path_folded {schema}.gin_trgm_ops, (ARRAY[organization_id, instrument_id]), \
                 (ARRAY[extension]), (ARRAY[{MONTH}])) \
             WITH (gin_pending_list_limit = {PENDING}) WHERE uploaded_at IS NOT NULL"
        ))
        .await
}
