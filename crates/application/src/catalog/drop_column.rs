//! Drops a column of a table.

use labdata_domain::{
    audit::{AuditAction, AuditTarget, AuditTargetKind},
    people::{actor::Actor, run_key::GuardedAction, scope::Scope},
};

use crate::{
    Error, Services,
    audit::record::{Record, audited},
    catalog::{
        define_table::{refusal, seen_by},
        visible::require_visible,
    },
    trash::deletion,
};

/// The column to drop.
#[derive(Clone, Debug)]
pub struct DropColumn {
    /// The name of its table.
    pub table: String,
    /// Its name in writes and reads.
    pub column: String,
    /// Drop it also when it holds values.
    pub force: bool,
}

/// Moves a column into the trash; with `force` also when it holds values.
///
/// # Errors
/// `Forbidden` without the admin scope; `NotFound`; `Invalid` while its
/// table needs it, or it holds values and `force` is not set.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn drop_column(
    services: &Services,
    actor: &Actor,
    command: DropColumn,
) -> Result<(), Error> {
    actor.require(Scope::Admin)?;
    actor.may(GuardedAction::DeleteTable)?;
    let DropColumn {
        table,
        column,
        force,
    } = &command;
    audited(services, actor, |within| async move {
        let all = within.catalog.snapshot(actor.organization).await?;
        require_visible(actor, &all, table)?;
        let organization = actor.organization;
        let dropped = if let Some(deletion) = deletion(&within, actor) {
            let trash = &within.trash;
            let dropped = trash.drop_column(organization, table, column, *force, &deletion);
            dropped.await
        } else {
            let now = within.clock.now();
            let catalog = &within.catalog;
            let dropped = catalog.drop_column(organization, table, column, *force, now);
            dropped.await
        };
        // A refusal may name tables that reference this one, and some of them may be hidden from the caller.
        dropped.map_err(|error| refusal(seen_by(actor, &all, error)))?;
        let target = AuditTarget::named(AuditTargetKind::Column, format!("{table}.{column}"));
        let record = Record::of(AuditAction::ColumnDropped, target).with("force", *force);
        Ok(((), Some(record)))
    })
    .await
}
