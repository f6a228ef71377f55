//! Records a dataset.

use labdata_domain::{
    ids::DatasetId,
    models::Dataset,
    names::Named,
    people::{actor::Actor, scope::Scope},
};
use labdata_ports::models::AddDatasetError;

use labdata_table_formats::read::Reading;

use super::take_snapshot::Snapshot;
use crate::{
    Error, Services,
    files::{quota::quota_of, upload_file::remove},
};

/// The dataset to record.
#[derive(Debug)]
pub struct CreateDataset {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: Option<String>,
    /// Its rows.
    pub snapshot: Snapshot,
}

/// A dataset that was recorded.
#[derive(Debug)]
pub struct CreatedDataset {
    /// The dataset.
    pub dataset: Dataset,
    /// Reading of its file; `None` for a query.
    pub reading: Option<Reading>,
}

/// Makes a dataset of a snapshot. It is listed from then on.
///
/// # Errors
/// `Forbidden` without the write scope; `InsufficientStorage` when the quota is used
/// up by now.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn create_dataset(
    services: &Services,
    actor: &Actor,
    command: CreateDataset,
) -> Result<CreatedDataset, Error> {
    actor.require(Scope::Write)?;
    let name = Named::Dataset
        .parse(&command.name)
        .map_err(Error::refused)?;
    let snapshot = command.snapshot;
    let reading = snapshot.reading;
    let dataset = Dataset {
        id: DatasetId::new(services.ids.next_id()),
        name: name.into(),
        description: command.description,
        columns: snapshot.columns,
        row_count: snapshot.row_count,
        source: snapshot.source,
        tables: snapshot.tables,
        object: snapshot.object,
        size: snapshot.size,
        created_by: actor.user,
        created_at: services.clock.now(),
    };
    let quota = quota_of(services, actor.organization).await?;
    let added = services
        .datasets
        .add_with_masks(actor.organization, &dataset, &snapshot.masks, quota)
        .await;
    match added {
        Ok(()) => {
            services.shown_tables.add(dataset.tables.iter().cloned());
            Ok(CreatedDataset { dataset, reading })
        }
        Err(AddDatasetError::InsufficientStorage(refusal)) => {
            remove(services, actor, dataset.object).await;
            for mask in snapshot.masks {
                remove(services, actor, mask.object).await;
            }
            Err(refusal.into())
        }
        Err(AddDatasetError::Port(error)) => {
            // It may have been recorded all the same: the rows stay.
            tracing::warn!(object = %dataset.object, %error, "a dataset was stored, but perhaps not recorded");
            Err(error.into())
        }
    }
}
