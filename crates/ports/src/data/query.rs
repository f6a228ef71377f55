//! Queries that people write in SQL over their organization's tables.

use async_trait::async_trait;
use labdata_domain::{
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
}

/// Result of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
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

/// Why a query has no result.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The query is wrong, reads what it may not, or exceeds its limits.
    #[error(transparent)]
    Refused(#[from] QueryFailure),
    /// The port failed; [`PortError::Busy`] when the organization has too many queries running.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// Runs queries from untrusted text.
#[async_trait]
pub trait QueryRunner: Send + Sync {
    /// Runs a query over the organization's tables (each raw one as one row per point) and the
    /// platform tables that are readable.
    ///
    /// An implementation MUST
    /// - isolate by construction, for any text: nothing of another organization or of the
    ///   platform is ever read, and nothing is ever changed;
    /// - leave nothing behind that a later query of anybody could meet;
    /// - hold the limits, and end what exceeds them;
    /// - end the query when the returned future is dropped.
    ///
    /// # Errors
    /// See [`QueryError`].
    async fn run(
        &self,
        organization: OrganizationId,
        query: &Query,
    ) -> Result<QueryResult, QueryError>;
}
