//! Names who or what started executions.

use labdata_domain::{
    executions::{Execution, started_by::Starter},
    page::Page,
    people::actor::Actor,
};

use crate::{Error, Services};

/// An execution, and who or what started it.
#[derive(Clone, Debug)]
pub struct StartedExecution {
    /// The execution.
    pub execution: Execution,
    /// Its starter.
    pub started_by: Starter,
}

/// Adds the starter to an execution that the actor was displayed.
///
/// # Errors
/// Errors of the ports.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn with_starter(
    services: &Services,
    actor: &Actor,
    execution: Execution,
) -> Result<StartedExecution, Error> {
    let all = with_starters(services, actor, vec![execution]).await?;
    let one = all.into_iter().next();
    one.ok_or_else(|| Error::Internal("an execution without a starter".to_owned()))
}

/// Adds the starters to a page of executions that the actor was displayed.
///
/// # Errors
/// Errors of the ports.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn page_with_starters(
    services: &Services,
    actor: &Actor,
    page: Page<Execution>,
) -> Result<Page<StartedExecution>, Error> {
    Ok(Page {
        items: with_starters(services, actor, page.items).await?,
        next: page.next,
    })
}

async fn with_starters(
    services: &Services,
    actor: &Actor,
    executions: Vec<Execution>,
) -> Result<Vec<StartedExecution>, Error> {
    let ids: Vec<_> = executions.iter().map(|execution| execution.id).collect();
    let found = services.executions.starters(actor.organization, &ids);
    let mut starters = found.await?;
    let started = executions.into_iter().filter_map(|execution| {
        let started_by = starters.remove(&execution.id)?;
        Some(StartedExecution {
            execution,
            started_by,
        })
    });
    Ok(started.collect())
}
