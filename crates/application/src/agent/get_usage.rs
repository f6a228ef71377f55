//! Shows the tokens that an organization has used.

use labdata_domain::{
    agent::{Usage, UsageMonth},
    people::{actor::Actor, scope::Scope},
};

use super::Agent;
use crate::{Error, Services};

/// Tokens of an organization in the current month.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MonthlyUsage {
    /// The month.
    pub month: UsageMonth,
    /// The tokens.
    pub usage: Usage,
    /// Number of tokens that it may use; `None` without a limit.
    pub budget: Option<u64>,
}

/// The tokens that the caller's organization has used this month.
///
/// # Errors
/// `Forbidden` without the read scope.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn get_usage(
    services: &Services,
    agent: &Agent,
    actor: &Actor,
) -> Result<MonthlyUsage, Error> {
    actor.require(Scope::Read)?;
    let month = UsageMonth::of(services.clock.now());
    Ok(MonthlyUsage {
        month,
        usage: agent.runs.usage(actor.organization, month).await?,
        budget: agent.limits.monthly_tokens,
    })
}
