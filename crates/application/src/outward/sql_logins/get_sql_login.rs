//! Reads a SQL login.

use labdata_domain::{
    ids::SqlLoginId,
    outward::sql_logins::SqlLogin,
    people::{actor::Actor, run_key::GuardedAction, scope::Scope},
};

use super::require_seen;
use crate::{Error, Services};

/// One of the caller's logins; any of the organization for an administrator.
///
/// # Errors
/// `Forbidden` without the read scope and for a run's key; `NotFound`.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn get_sql_login(
    services: &Services,
    actor: &Actor,
    id: SqlLoginId,
) -> Result<SqlLogin, Error> {
    actor.require(Scope::Read)?;
    actor.may(GuardedAction::UsePersonalRecords)?;
    let login = services.sql_logins.get(actor.organization, id).await?;
    require_seen(actor, &login)?;
    Ok(login)
}
