//! Lists entries of the audit log.

use labdata_domain::{
    audit::{AuditEntry, AuditFilter},
    page::{Page, PageRequest},
    people::{actor::Actor, run_key::GuardedAction, scope::Scope},
};

use crate::{
    Error, Services,
    slots::{Held, Work},
};

/// The organization's entries that match, newest first.
///
/// # Errors
/// `Forbidden` without the admin scope and to a narrowed key.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn list_audit(
    services: &Services,
    actor: &Actor,
    filter: &AuditFilter,
    page: PageRequest,
) -> Result<Held<Page<AuditEntry>>, Error> {
    actor.require(Scope::Admin)?;
    actor.may(GuardedAction::ReadAuditLog)?;
    let slots = services.slots.enter(Work::Page, actor).await?;
    let value = services
        .audit
        .list(actor.organization, filter, page)
        .await?;
    Ok(Held { value, slots })
}
