//! Ends SQL logins whose time has come, and grants what PostgreSQL lacks.

use labdata_domain::audit::AuditAction;
use labdata_ports::{
    PortError,
    outward::sql_logins::{DueLogin, Maintained},
};

use super::record_of;
use crate::{Error, Services, idempotency::unit_of_work::UnitOfWork};

/// Maximum number of logins that end in one pass.
const BATCH: u32 = 50;

/// Outcome of a pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweptLogins {
    /// Number of logins that ended.
    pub ended: u64,
    /// Outcome of the maintenance of rights, sessions and roles.
    pub maintained: Maintained,
}

/// Ends logins that expired, whose users are disabled, or whose roles are missing; brings the rights of all other
/// logins up to date, and ends sessions beyond their limits. Several servers may do it at once.
///
/// # Errors
/// Errors of the ports. What was not done is left to the next pass.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn sweep_sql_logins(services: &Services) -> Result<SweptLogins, Error> {
    let now = services.clock.now();
    let due = services
        .sql_logins
        .due(services.sql.is_shared, now, BATCH)
        .await?;
    let mut ended = 0;
    for login in &due {
        if end(services, login).await? {
            ended += 1;
        }
    }
    let maintained = services.sql_logins.maintain().await?;
    Ok(SweptLogins { ended, maintained })
}

/// Ends a login and records that; returns false if another server did.
async fn end(services: &Services, due: &DueLogin) -> Result<bool, Error> {
    let unit = UnitOfWork::begin(services, due.organization).await?;
    let within = unit.services();
    let outcome = async {
        let now = within.clock.now();
        let ended = within
            .sql_logins
            .end(due.organization, due.login.id, due.reason, now);
        let ended = match ended.await {
            Ok(ended) => ended,
            Err(PortError::NotFound(_)) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let record =
            record_of(AuditAction::SqlLoginRevoked, &ended).with("reason", due.reason.as_str());
        let entry = record.entry(within, None);
        within.audit.append(due.organization, entry).await?;
        Ok(true)
    }
    .await;
    unit.conclude(outcome).await
}
