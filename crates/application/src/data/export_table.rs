//! Reads a whole table in parts.

use labdata_domain::{
    data::read::ExportPlan,
    ids::OrganizationId,
    people::{actor::Actor, scope::Scope},
    refusal::{KeyNotFound, Resource},
    scalar::DataType,
};
use labdata_ports::data::parts::{PartSink, StreamError};

use crate::{Error, Ports};

/// A table that can be read in parts.
#[derive(Clone, Debug)]
pub struct TableExport {
    organization: OrganizationId,
    plan: ExportPlan,
}

/// Prepares to read a whole table.
///
/// # Errors
/// `Forbidden` without the read scope; `NotFound` without such a table.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn export_table(ports: &Ports, actor: &Actor, name: &str) -> Result<TableExport, Error> {
    actor.require(Scope::Read)?;
    let catalog = ports.catalog.snapshot(actor.organization).await?;
    let plan = ExportPlan::new(&catalog, name).ok_or_else(|| Error::not_found(Resource::Table))?;
    Ok(TableExport {
        organization: actor.organization,
        plan,
    })
}

impl TableExport {
    /// Names and types of the columns.
    #[must_use]
    pub fn columns(&self) -> Vec<(String, DataType)> {
        self.plan.table_columns()
    }

    /// Reads the table as of one moment, which lasts until the sink has taken the last part.
    ///
    /// # Errors
    /// [`Error::Internal`] if the sink takes no more; those of the store.
    #[tracing::instrument(level = "debug", skip_all)]
    pub async fn send(self, ports: &Ports, sink: Box<dyn PartSink>) -> Result<(), Error> {
        let sent = ports.data.export(self.organization, &self.plan, sink).await;
        sent.map_err(failure)
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
