//! Values that the statements of one write or revert share.

use labdata_domain::{
    catalog::{Catalog, KeyedTable},
    ids::{ExecutionId, OrganizationId},
    people::rights::Rights,
};
use time::{Duration, OffsetDateTime};

use super::{failure::Failure, history::Author};
use crate::database::{names::TableNames, sql::Schemas};

/// Values that the statements of one write or revert share.
#[derive(Clone)]
pub(super) struct WriteContext<'w> {
    pub(super) organization: OrganizationId,
    pub(super) schemas: Schemas,
    pub(super) catalog: &'w Catalog,
    pub(super) execution: ExecutionId,
    /// The caller's rights to tables.
    pub(super) rights: &'w Rights,
    /// Author that changes are recorded with.
    pub(super) author: Author,
    /// The moment of all that it changes. It starts with the caller's clock, and is later than the moment of everything
    /// that it replaces: other servers' clocks differ, and a write that began later may have been applied before.
    pub(super) now: OffsetDateTime,
    /// The moment of the last thing that a write has stored; always `None` for a revert.
    pub(super) stored: Option<OffsetDateTime>,
}

impl WriteContext<'_> {
    pub(super) fn names<'t>(&self, table: &'t KeyedTable) -> TableNames<'t> {
        self.schemas.names(table)
    }

    /// Makes the moment later than that of something that is changed, and locked.
    ///
    /// # Errors
    /// [`Failure::Late`] if the write has stored something under an earlier moment: rows and series of one write have one
    /// moment, so the write starts again.
    pub(super) fn later_than(&mut self, latest: Option<OffsetDateTime>) -> Result<(), Failure> {
        self.advance(latest, latest.map(after))
    }

    /// Makes the moment not earlier than that of something that is locked and stays.
    ///
    /// # Errors
    /// As [`Self::later_than`].
    pub(super) fn not_before(&mut self, latest: Option<OffsetDateTime>) -> Result<(), Failure> {
        self.advance(latest, latest)
    }

    fn advance(
        &mut self,
        latest: Option<OffsetDateTime>,
        moment: Option<OffsetDateTime>,
    ) -> Result<(), Failure> {
        let Some(moment) = moment.filter(|moment| *moment > self.now) else {
            return Ok(());
        };
        // What the write itself has stored may be changed again, a moment later.
        if self.stored.is_some() && latest > self.stored {
            return Err(Failure::Late(moment));
        }
        self.now = moment;
        Ok(())
    }

    /// Refuses a moment that is not later than that of something of which the write has stored a successor.
    ///
    /// # Errors
    /// [`Failure::Late`], after which the write starts again.
    pub(super) fn require_later_than(&self, latest: Option<OffsetDateTime>) -> Result<(), Failure> {
        let is_own = self.stored.is_some() && latest <= self.stored;
        match latest.map(after) {
            Some(moment) if moment > self.now && !is_own => Err(Failure::Late(moment)),
            _ => Ok(()),
        }
    }

    /// Notes that the write has stored something.
    pub(super) const fn note_stored(&mut self) {
        self.stored = Some(self.now);
    }
}

/// The first moment after another one: PostgreSQL stores microseconds.
fn after(moment: OffsetDateTime) -> OffsetDateTime {
    moment.saturating_add(Duration::MICROSECOND)
}
