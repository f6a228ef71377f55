//! Runs a query that a person or an agent wrote.

use std::time::Duration;

use labdata_domain::{
    data::query::QueryText,
    keys::{actor::Actor, scope::Scope},
};
use labdata_ports::data::query::{Query, QueryError, QueryLimits, QueryResult};
use serde_json::Value;

use crate::{Error, Ports};

/// Limits of one query (contract §5).
pub const LIMITS: QueryLimits = QueryLimits {
    time: Duration::from_secs(15),
    rows: 10_000,
    bytes: 16 << 20,
};

/// The query to run.
#[derive(Clone, Debug)]
pub struct QueryData {
    /// Its SQL, with placeholders `%s` or `$1`, `$2`, ….
    pub sql: String,
    /// The placeholders' values.
    pub params: Vec<Value>,
}

/// Runs a query over the organization's tables.
///
/// # Errors
/// [`Error::Forbidden`] without the read scope; [`Error::Invalid`] when the query is wrong, reads
/// what it may not, or takes more than [`LIMITS`].
pub async fn query_data(
    ports: &Ports,
    actor: &Actor,
    command: QueryData,
) -> Result<QueryResult, Error> {
    actor.require(Scope::Read)?;
    let text =
        QueryText::parse(&command.sql).map_err(|refusal| Error::Invalid(refusal.to_string()))?;
    text.check_parameters(command.params.len())
        .map_err(|refusal| Error::Invalid(refusal.to_string()))?;
    let query = Query {
        text,
        params: command.params,
        limits: LIMITS,
    };
    ports
        .queries
        .run(actor.organization, &query)
        .await
        .map_err(|error| match error {
            QueryError::Refused(reason) => Error::Invalid(reason),
            QueryError::Port(error) => error.into(),
        })
}
