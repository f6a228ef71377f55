//! Runs a query that a person or an agent wrote.

use std::sync::Arc;

use labdata_domain::{
    catalog::Catalog,
    data::query::{QUERY_LIMITS, QueryLimits, QueryText, STREAM_LIMITS},
    ids::OrganizationId,
    people::{actor::Actor, scope::Scope},
};
use labdata_ports::data::query::{Query, QueryError, QueryResult, ResultSink};
use serde_json::Value;

use super::{export_table::StreamSlots, plans::planned_anew};
use crate::{
    Error, Services,
    catalog::visible::visible_catalog,
    slots::{Held, Work},
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
/// `Forbidden` without the read scope; `Invalid` when the query is wrong, reads
/// what it may not, or takes more than [`QUERY_LIMITS`].
#[tracing::instrument(level = "debug", skip_all)]
pub async fn query_data(
    services: &Services,
    actor: &Actor,
    command: QueryData,
) -> Result<Held<QueryResult>, Error> {
    query_data_within(services, actor, command, QUERY_LIMITS).await
}

/// Runs a query within other limits.
///
/// # Errors
/// As [`query_data`].
pub(crate) async fn query_data_within(
    services: &Services,
    actor: &Actor,
    command: QueryData,
    limits: QueryLimits,
) -> Result<Held<QueryResult>, Error> {
    actor.require(Scope::Read)?;
    let mut query = checked(command, limits)?;
    // After the checks: a query that is refused needs no slot.
    let slots = services.slots.enter(Work::Result, actor).await?;
    let value = planned_anew!(run(services, actor, &mut query))?;
    Ok(Held { value, slots })
}

async fn run(services: &Services, actor: &Actor, query: &mut Query) -> Result<QueryResult, Error> {
    query.view = query_view(services, actor).await?;
    let run = services.queries.run(actor.organization, query).await;
    run.map_err(failure)
}

/// The caller's view of the catalog, if it hides tables.
pub(crate) async fn query_view(
    services: &Services,
    actor: &Actor,
) -> Result<Option<Arc<Catalog>>, Error> {
    // Those who see everything need no look at the catalog.
    if actor.rights.see_everything() {
        return Ok(None);
    }
    let catalog = visible_catalog(services, actor).await?;
    Ok(Some(catalog).filter(|catalog| !catalog.hidden().is_empty()))
}

/// A query whose result can be sent while it is read.
#[derive(Debug)]
pub struct QueryStream {
    organization: OrganizationId,
    query: Query,
    slots: StreamSlots,
}

/// Prepares to send the result of a query while it is read.
///
/// # Errors
/// `Forbidden` without the read scope; `Invalid` when the query is refused before it runs.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn stream_query(
    services: &Services,
    actor: &Actor,
    command: QueryData,
) -> Result<QueryStream, Error> {
    actor.require(Scope::Read)?;
    let mut query = checked(command, STREAM_LIMITS)?;
    let slots = StreamSlots::enter(services, actor).await?;
    // After the wait for slots, during which tables may have become hidden.
    query.view = query_view(services, actor).await?;
    Ok(QueryStream {
        organization: actor.organization,
        query,
        slots,
    })
}

impl QueryStream {
    /// Runs the query, and hands its result to the sink.
    ///
    /// # Errors
    /// `Invalid` when the query is wrong, reads what it may not, or takes more than [`STREAM_LIMITS`];
    /// [`Error::Internal`] if the sink takes no more.
    #[tracing::instrument(level = "debug", skip_all)]
    pub async fn send(self, services: &Services, sink: &mut dyn ResultSink) -> Result<(), Error> {
        let sent = services
            .queries
            .stream(self.organization, &self.query, sink)
            .await;
        drop(self.slots);
        sent.map_err(failure)
    }
}

fn checked(command: QueryData, limits: QueryLimits) -> Result<Query, Error> {
    let text = QueryText::parse(&command.sql).map_err(Error::refused)?;
    text.check_parameters(command.params.len())
        .map_err(Error::refused)?;
    Ok(Query {
        text,
        params: command.params,
        limits,
        view: None,
    })
}

fn failure(error: QueryError) -> Error {
    match error {
        QueryError::Refused(failure) => Error::refused(failure),
        QueryError::Port(error) => error.into(),
        QueryError::Closed(closed) => Error::Internal(closed.to_string()),
    }
}
