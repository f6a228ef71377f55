//! Reads a whole table in parts.

use std::time::Duration;

use labdata_domain::{
    audit::{AuditAction, AuditTarget, AuditTargetKind},
    data::as_of::PastTables,
    data::read::{ExportPlan, ExportTimedOut, TableColumn},
    ids::OrganizationId,
    people::{actor::Actor, scope::Scope},
    refusal::{KeyNotFound, Resource},
};
use labdata_limits::waiting::limited;
use labdata_ports::data::parts::{PartSink, StreamError};
use time::OffsetDateTime;

use super::as_of::require_known;
use crate::{
    Error, Services,
    audit::record::{Record, record},
    catalog::visible::visible_catalog,
    slots::{Slot, Work},
};

/// A table that can be read in parts.
#[derive(Debug)]
pub struct TableExport {
    organization: OrganizationId,
    plan: ExportPlan,
    slots: StreamSlots,
}

/// Prepares to read a whole table, as it stood at a moment if one is given.
///
/// # Errors
/// `Forbidden` without the read scope; `NotFound` if there is no such table; `Invalid` for a moment at which it is
/// not known.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn export_table(
    services: &Services,
    actor: &Actor,
    name: &str,
    as_of: Option<OffsetDateTime>,
) -> Result<TableExport, Error> {
    let export = export_table_again(services, actor, name, as_of).await?;
    let target = AuditTarget::named(AuditTargetKind::Table, name);
    record(
        services,
        actor,
        Record::of(AuditAction::TableExported, target),
    )
    .await?;
    Ok(export)
}

/// Prepares an export again, as the tables have changed since: one export is recorded once.
///
/// # Errors
/// As [`export_table`].
#[tracing::instrument(level = "debug", skip_all)]
pub async fn export_table_again(
    services: &Services,
    actor: &Actor,
    name: &str,
    as_of: Option<OffsetDateTime>,
) -> Result<TableExport, Error> {
    actor.require(Scope::Read)?;
    // Before the catalog, which could be outdated after a wait for a slot.
    let slots = StreamSlots::enter(services, actor).await?;
    let catalog = visible_catalog(services, actor).await?;
    let plan = ExportPlan::new(&catalog, name, as_of);
    let plan = plan.ok_or_else(|| Error::not_found(Resource::Table))?;
    let now = services.clock.now();
    let past = as_of.map(|at| PastTables::of(&[&plan.table], &[], at, now));
    let past = past.transpose().map_err(Error::refused)?;
    require_known(services, actor.organization, past.as_ref()).await?;
    Ok(TableExport {
        organization: actor.organization,
        plan,
        slots,
    })
}

impl TableExport {
    /// The columns.
    #[must_use]
    pub fn columns(&self) -> Vec<TableColumn> {
        self.plan.table_columns()
    }

    /// Reads the table as of one moment, which lasts until the sink has taken the last part.
    ///
    /// # Errors
    /// [`Error::Internal`] if the sink takes no more; `Conflict` if the tables have changed since the preparation, before
    /// anything was sent; `Unavailable` after [`Services::export_time`]; those
    /// of the store.
    #[tracing::instrument(level = "debug", skip_all)]
    pub async fn send(self, services: &Services, sink: Box<dyn PartSink>) -> Result<(), Error> {
        let reading = services.data.export(self.organization, &self.plan, sink);
        let sent = in_time(services.export_time, reading).await;
        // The slots last until the last part is sent.
        drop(self.slots);
        sent
    }
}

/// Slots of a table that is sent while it is read. It counts as a result too.
#[derive(Debug)]
pub(super) struct StreamSlots {
    _result: Slot,
    _stream: Slot,
}

impl StreamSlots {
    pub(super) async fn enter(services: &Services, actor: &Actor) -> Result<Self, Error> {
        Ok(Self {
            _result: services
                .slots
                .enter(Work::Result, actor.organization)
                .await?,
            _stream: services
                .slots
                .enter(Work::Stream, actor.organization)
                .await?,
        })
    }
}

/// Reads a table for that time at most. A reader that is slow, but never stalls, would otherwise hold a
/// moment of the database for days, in which no dead row is removed.
pub(super) async fn in_time(
    time: Duration,
    reading: impl Future<Output = Result<(), StreamError>>,
) -> Result<(), Error> {
    let sent = limited(time, reading).await;
    sent.ok_or_else(|| Error::refused(ExportTimedOut(time)))?
        .map_err(failure)
}

pub(super) fn failure(error: StreamError) -> Error {
    match error {
        StreamError::NoParent(key) => Error::refused(KeyNotFound {
            resource: Resource::Parent,
            key: key.to_string(),
        }),
        StreamError::Closed(closed) => Error::Internal(closed.to_string()),
        StreamError::Port(error) => error.into(),
    }
}
