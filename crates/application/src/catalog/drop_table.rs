//! Drops a table of the organization.

use std::sync::Arc;

use labdata_domain::{
    audit::AuditAction,
    people::{actor::Actor, run_key::GuardedAction, scope::Scope},
};

use crate::{
    Error, Services,
    audit::record::{Record, audited},
    catalog::{
        audit_details::target_of,
        define_table::{refusal, seen_by},
        visible::require_visible,
    },
    trash::deletion,
};

/// Moves a table into the trash; with `force` also when it holds rows.
///
/// # Errors
/// `Forbidden` without the admin scope; `NotFound`; `Invalid` while it
/// is referenced, or not empty and `force` is not set.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn drop_table(
    services: &Services,
    actor: &Actor,
    name: &str,
    force: bool,
) -> Result<(), Error> {
    actor.require(Scope::Admin)?;
    actor.may(GuardedAction::DeleteTable)?;
    audited(services, actor, |within| async move {
        let all = within.catalog.snapshot(actor.organization).await?;
        // Before the drop, so that a hidden table is not found rather than refused, as one that does not exist.
        require_visible(actor, &all, name)?;
        let organization = actor.organization;
        let dropped = if let Some(deletion) = deletion(&within, actor) {
            let trash = &within.trash;
            trash.drop_table(organization, name, force, &deletion).await
        } else {
            let now = within.clock.now();
            let catalog = &within.catalog;
            catalog.drop_table(organization, name, force, now).await
        };
        dropped.map_err(|error| refusal(seen_by(actor, &all, error)))?;
        let target = target_of(all.table(name).map(Arc::as_ref), name);
        let record = Record::of(AuditAction::TableDropped, target).with("force", force);
        Ok(((), Some(record)))
    })
    .await
}
