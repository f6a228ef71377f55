//! Revokes a SQL login.

use labdata_domain::{
    audit::AuditAction,
    ids::SqlLoginId,
    outward::sql_logins::EndReason,
    people::{actor::Actor, run_key::GuardedAction, scope::Scope},
};

use super::{record_of, require_seen};
use crate::{Error, Services, audit::record::audited};

/// Revokes one of the caller's logins; any of the organization for an administrator. Its sessions end.
///
/// # Errors
/// `Forbidden` without the read scope and for a run's key; `NotFound`.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn revoke_sql_login(
    services: &Services,
    actor: &Actor,
    id: SqlLoginId,
) -> Result<(), Error> {
    actor.require(Scope::Read)?;
    actor.may(GuardedAction::UsePersonalRecords)?;
    audited(services, actor, |within| async move {
        let login = within.sql_logins.get(actor.organization, id).await?;
        require_seen(actor, &login)?;
        let now = within.clock.now();
        let ended = within
            .sql_logins
            .end(actor.organization, id, EndReason::Revoked, now)
            .await?;
        let record = record_of(AuditAction::SqlLoginRevoked, &ended)
            .with("reason", EndReason::Revoked.as_str());
        Ok(((), Some(record)))
    })
    .await?;
    // After the commit, when no new session can begin. What fails is done by the next sweep.
    if let Err(error) = services.sql_logins.maintain().await {
        tracing::warn!(%error, "sessions of a revoked SQL login end with the next sweep");
    }
    Ok(())
}
