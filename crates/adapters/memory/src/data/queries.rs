//! No queries: a store in memory knows no SQL.

use async_trait::async_trait;
use labdata_domain::{data::query::QueryFailure, ids::OrganizationId};
use labdata_ports::data::query::{Query, QueryError, QueryResult, QueryRunner};

/// Refuses every query, saying why.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoQueryRunner;

#[async_trait]
impl QueryRunner for NoQueryRunner {
    async fn run(&self, _: OrganizationId, _: &Query) -> Result<QueryResult, QueryError> {
        Err(QueryFailure::NoSql.into())
    }
}
