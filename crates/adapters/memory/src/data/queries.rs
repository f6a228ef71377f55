//! No queries: a store in memory knows no SQL.

use async_trait::async_trait;
use labdata_domain::{data::query::QueryFailure, ids::OrganizationId};
use labdata_ports::data::query::{Query, QueryError, QueryRunner, ResultSink};

/// Refuses every query, saying why.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoQueryRunner;

#[async_trait]
impl QueryRunner for NoQueryRunner {
    async fn stream(
        &self,
        _: OrganizationId,
        _: &Query,
        _: &mut dyn ResultSink,
    ) -> Result<(), QueryError> {
        Err(QueryFailure::NoSql.into())
    }
}
