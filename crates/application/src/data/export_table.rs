//! Reads a whole table in parts.

use labdata_domain::{
    data::read::{ExportPlan, TableColumn},
    ids::OrganizationId,
    people::{actor::Actor, scope::Scope},
    refusal::{KeyNotFound, Resource},
};
use labdata_ports::data::parts::{PartSink, StreamError};

use crate::{
    Error, Services,
    slots::{Slot, Work},
};

/// A table that can be read in parts.
#[derive(Debug)]
pub struct TableExport {
    organization: OrganizationId,
    plan: ExportPlan,
    slots: StreamSlots,
}

/// Prepares to read a whole table.
///
/// # Errors
/// `Forbidden` without the read scope; `NotFound` if there is no such table.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn export_table(
    ports: &Services,
    actor: &Actor,
    name: &str,
) -> Result<TableExport, Error> {
    actor.require(Scope::Read)?;
    // Before the catalog, which could be outdated after a wait for a slot.
    let slots = StreamSlots::enter(ports, actor).await?;
    let catalog = ports.catalog.snapshot(actor.organization).await?;
    let plan = ExportPlan::new(&catalog, name).ok_or_else(|| Error::not_found(Resource::Table))?;
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
    /// [`Error::Internal`] if the sink takes no more; those of the store.
    #[tracing::instrument(level = "debug", skip_all)]
    pub async fn send(self, ports: &Services, sink: Box<dyn PartSink>) -> Result<(), Error> {
        let sent = ports.data.export(self.organization, &self.plan, sink).await;
        // The slots last until the last part is sent.
        drop(self.slots);
        sent.map_err(failure)
    }
}

/// Slots of a table that is sent while it is read. It counts as a result too.
#[derive(Debug)]
pub(super) struct StreamSlots {
    _result: Slot,
    _stream: Slot,
}

impl StreamSlots {
    pub(super) async fn enter(ports: &Services, actor: &Actor) -> Result<Self, Error> {
        Ok(Self {
            _result: ports.slots.enter(Work::Result, actor.organization).await?,
            _stream: ports.slots.enter(Work::Stream, actor.organization).await?,
        })
    }
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
