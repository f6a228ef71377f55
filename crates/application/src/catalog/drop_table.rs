//! Drops a table of the organization.

use labdata_domain::people::{actor::Actor, run_key::GuardedAction, scope::Scope};

use crate::{Error, Services, catalog::define_table::refusal};

/// Drops a table; with `force` also when it holds rows.
///
/// # Errors
/// `Forbidden` without the admin scope; `NotFound`; `Invalid` while it
/// is referenced, or not empty and `force` is not set.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn drop_table(
    ports: &Services,
    actor: &Actor,
    name: &str,
    force: bool,
) -> Result<(), Error> {
    actor.require(Scope::Admin)?;
    actor.may(GuardedAction::DeleteTable)?;
    ports
        .catalog
        .drop_table(actor.organization, name, force, ports.clock.now())
        .await
        .map_err(refusal)
}
