//! Lists SQL logins.

use labdata_domain::{
    outward::sql_logins::SqlLogin,
    page::{Page, PageRequest},
    people::{actor::Actor, run_key::GuardedAction, scope::Scope},
};

use super::seen_by;
use crate::{Error, Services};

/// The caller's logins, newest first; those of the organization for an administrator.
///
/// # Errors
/// `Forbidden` without the read scope and for a run's key.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn list_sql_logins(
    services: &Services,
    actor: &Actor,
    page: PageRequest,
) -> Result<Page<SqlLogin>, Error> {
    actor.require(Scope::Read)?;
    actor.may(GuardedAction::UsePersonalRecords)?;
    let logins = services
        .sql_logins
        .list(actor.organization, seen_by(actor), page);
    Ok(logins.await?)
}
