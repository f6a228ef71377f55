//! Reads the whole audit log, batch by batch.

use labdata_domain::{
    audit::{AuditEntry, AuditFilter},
    ids::OrganizationId,
    people::{actor::Actor, run_key::GuardedAction, scope::Scope},
};
use time::OffsetDateTime;

use crate::{
    Error, Services,
    slots::{Slot, Work},
};

/// Number of entries that are in memory at a time.
const BATCH: u32 = 1000;

/// The entries that match, oldest first, as they are read.
#[derive(Debug)]
pub struct AuditStream {
    organization: OrganizationId,
    filter: AuditFilter,
    after: Option<OffsetDateTime>,
    is_over: bool,
    /// Held until the last entry is sent.
    _slot: Slot,
}

/// Begins to read the organization's entries that match. No connection to the database is held between two
/// batches: entries never change.
///
/// # Errors
/// `Forbidden` without the admin scope and to a narrowed key.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn stream_audit(
    services: &Services,
    actor: &Actor,
    filter: AuditFilter,
) -> Result<AuditStream, Error> {
    actor.require(Scope::Admin)?;
    actor.may(GuardedAction::ReadAuditLog)?;
    let slot = services.slots.enter(Work::Stream, actor).await?;
    Ok(AuditStream {
        organization: actor.organization,
        filter,
        after: None,
        is_over: false,
        _slot: slot,
    })
}

impl AuditStream {
    /// The next entries; empty at the end.
    ///
    /// # Errors
    /// Errors of the ports.
    pub async fn next(&mut self, services: &Services) -> Result<Vec<AuditEntry>, Error> {
        if self.is_over {
            return Ok(Vec::new());
        }
        let audit = &services.audit;
        let read = audit.list_after(self.organization, &self.filter, self.after, BATCH);
        let entries = read.await?;
        self.is_over = u32::try_from(entries.len()) != Ok(BATCH);
        self.after = entries.last().map(|entry| entry.at);
        Ok(entries)
    }
}
