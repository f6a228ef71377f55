//! Queries that people write in SQL over their organization's tables.

use std::sync::Arc;

use async_trait::async_trait;
use labdata_domain::{
    catalog::Catalog,
    data::query::{QueryFailure, QueryLimits, QueryText},
    ids::OrganizationId,
    scalar::DataType,
};
use serde_json::Value;

use crate::PortError;

/// A query to run.
#[derive(Clone, Debug)]
pub struct Query {
    /// Its text.
    pub text: QueryText,
    /// Values of its parameters, as many as it has. Each is read as the type that the place of its
    /// placeholder asks for.
    pub params: Vec<Value>,
    /// Its limits.
    pub limits: QueryLimits,
    /// The caller's view of the catalog, if it hides tables: the query reads no others.
    pub view: Option<Arc<Catalog>>,
}

/// Result of a query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueryResult {
    /// The names of the columns, in order; a name may occur twice.
    pub columns: Vec<String>,
    /// The type of each column, as far as the platform has it: arrays and records are `json`; texts,
    /// UUIDs, intervals and datetimes without a time zone are `text`.
    pub types: Vec<DataType>,
    /// Each row as the text of a JSON array with one value per column: numbers, datetimes (RFC
    /// 3339, UTC) and JSON rendered as a write accepts them.
    pub rows: Vec<String>,
}

/// Column of a query's result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultColumn {
    /// Its name; several columns may have the same.
    pub name: String,
    /// Its type, as in [`QueryResult::types`].
    pub data_type: DataType,
}

/// Error: the receiver of a result takes no more of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the receiver of the result takes no more of it")]
pub struct SinkClosed;

/// Receiver of a result that arrives in parts.
#[async_trait]
pub trait ResultSink: Send {
    /// Takes the columns, once, before any row.
    ///
    /// # Errors
    /// [`SinkClosed`] ends the query.
    async fn begin(&mut self, columns: Vec<ResultColumn>) -> Result<(), SinkClosed>;

    /// Takes the next rows, each as in [`QueryResult::rows`]. The query waits until they are taken.
    ///
    /// # Errors
    /// [`SinkClosed`] ends the query.
    async fn rows(&mut self, rows: Vec<String>) -> Result<(), SinkClosed>;
}

/// Why a query has no result.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The query is wrong, reads what it may not, or exceeds its limits.
    #[error(transparent)]
    Refused(#[from] QueryFailure),
    /// The port failed; [`PortError::Busy`] when the organization has too many queries running.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The receiver took no more of the result.
    #[error(transparent)]
    Closed(#[from] SinkClosed),
}

/// Runs queries from untrusted text.
#[async_trait]
pub trait QueryRunner: Send + Sync {
    /// Makes the checks that otherwise the first query makes. A server calls it once it serves.
    ///
    /// # Errors
    /// As for every use of the database; the first query makes the checks then.
    async fn prepare(&self) -> Result<(), PortError> {
        Ok(())
    }

    /// Runs a query over the organization's tables (each raw one as one row per point) and the
    /// platform tables that are readable.
    ///
    /// An implementation MUST
    /// - isolate by construction, for any text: nothing of another organization or of the
    ///   platform is ever read, and nothing is ever changed;
    /// - read no table that [`Query::view`] hides, and fail as if there were none of that name;
    /// - leave nothing behind that a later query of anybody could meet;
    /// - hold the limits, and end what exceeds them;
    /// - hold a bounded part of the result in memory, and wait for the sink to take it;
    /// - begin the sink at most once, and not before the query is known to be valid;
    /// - end the query when the returned future is dropped, or the sink takes no more.
    ///
    /// # Errors
    /// See [`QueryError`]; [`PortError::Conflict`] if the view is not that of the current catalog. The sink may
    /// have taken a part of the result by then.
    async fn stream(
        &self,
        organization: OrganizationId,
        query: &Query,
        sink: &mut dyn ResultSink,
    ) -> Result<(), QueryError>;

    /// Runs a query as [`QueryRunner::stream`], and returns its whole result.
    ///
    /// # Errors
    /// See [`QueryError`].
    async fn run(
        &self,
        organization: OrganizationId,
        query: &Query,
    ) -> Result<QueryResult, QueryError> {
        let mut result = Collected::default();
        self.stream(organization, query, &mut result).await?;
        Ok(result.0)
    }
}

/// A whole result in memory.
#[derive(Default)]
struct Collected(QueryResult);

#[async_trait]
impl ResultSink for Collected {
    async fn begin(&mut self, columns: Vec<ResultColumn>) -> Result<(), SinkClosed> {
        let columns = columns.into_iter();
        (self.0.columns, self.0.types) = columns
            .map(|column| (column.name, column.data_type))
            .unzip();
        Ok(())
    }

    async fn rows(&mut self, rows: Vec<String>) -> Result<(), SinkClosed> {
        self.0.rows.extend(rows);
        Ok(())
    }
}
