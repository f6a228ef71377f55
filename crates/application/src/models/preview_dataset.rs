//! Shows the first rows of a dataset.

use std::{ops::Range, thread};

use bytes::{Bytes, BytesMut};
use futures::{TryStreamExt, channel::oneshot};
use labdata_domain::{
    ids::DatasetId,
    models::{Dataset, PREVIEWED_ROWS, preview_cell},
    people::{actor::Actor, scope::Scope},
    scalar::Values,
};
use labdata_ports::PortError;
use labdata_table_formats::read::{PartialFile, ReadError};
use serde_json::Value;

use super::visible_datasets::visible_dataset;
use crate::{
    Error, Services,
    slots::{Held, Work},
};

/// First rows of a dataset.
#[derive(Clone, Debug)]
pub struct DatasetPreview {
    /// The dataset.
    pub dataset: Dataset,
    /// Its first [`PREVIEWED_ROWS`] rows, each with one value per column.
    pub rows: Vec<Vec<Value>>,
}

/// Reads the first rows of a dataset. Long texts are cut.
///
/// Of the object, only the footer and the first row group are read.
///
/// # Errors
/// `Forbidden` without the read scope; `NotFound`.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn preview_dataset(
    services: &Services,
    actor: &Actor,
    id: DatasetId,
) -> Result<Held<DatasetPreview>, Error> {
    actor.require(Scope::Read)?;
    let slots = services.slots.enter(Work::Result, actor).await?;
    let dataset = visible_dataset(services, actor, id).await?;
    let mut file = PartialFile::new(dataset.size);
    // Three small reads in place of gigabytes: Parquet has its index at the end, and its length behind it.
    add(services, actor, &dataset, &mut file, |file| Ok(file.tail())).await?;
    add(services, actor, &dataset, &mut file, PartialFile::footer).await?;
    add(
        services,
        actor,
        &dataset,
        &mut file,
        PartialFile::first_group,
    )
    .await?;
    let columns = dataset.columns.clone();
    let (done, outcome) = oneshot::channel();
    let thread = thread::Builder::new().name("preview".to_owned());
    let spawned = thread.spawn(move || {
        let read = first_rows(file).map(|rows| {
            let rows = rows.into_iter().map(|row| {
                let cells = row.into_iter().zip(&columns);
                cells
                    .map(|(cell, column)| preview_cell(cell, column.data_type))
                    .collect()
            });
            rows.collect()
        });
        // The receiver no longer exists if the request was abandoned.
        let _ = done.send(read);
    });
    spawned.map_err(|error| Error::Internal(format!("no thread for a preview: {error}")))?;
    let rows = outcome
        .await
        .map_err(|_| Error::Internal("the thread of a preview ended early".to_owned()))?;
    let value = DatasetPreview {
        rows: rows.map_err(|error| unreadable(&error))?,
        dataset,
    };
    Ok(Held { value, slots })
}

/// Adds a range of the object to what is at hand.
async fn add(
    services: &Services,
    actor: &Actor,
    dataset: &Dataset,
    file: &mut PartialFile,
    range: impl Fn(&PartialFile) -> Result<Range<u64>, ReadError>,
) -> Result<(), Error> {
    let range = range(file).map_err(|error| unreadable(&error))?;
    if range.is_empty() {
        return Ok(());
    }
    let start = range.start;
    let body = services
        .blobs
        .read(actor.organization, dataset.object, Some(range));
    let chunks = body.await?.bytes;
    let bytes = chunks.try_fold(BytesMut::new(), |mut bytes, chunk| async move {
        bytes.extend_from_slice(&chunk);
        Ok(bytes)
    });
    let bytes: Bytes = bytes
        .await
        .map_err(|error| PortError::Unavailable(error.to_string()))?
        .freeze();
    file.add(start, bytes);
    Ok(())
}

/// A dataset that the platform wrote can be read.
fn unreadable(error: &ReadError) -> Error {
    Error::Internal(format!("a dataset cannot be read: {error}"))
}

fn first_rows(file: PartialFile) -> Result<Vec<Vec<Value>>, ReadError> {
    let mut reader = file.open()?;
    let mut rows = Vec::new();
    while rows.len() < PREVIEWED_ROWS
        && let Some(part) = reader.next_part()?
    {
        let length = part.first().map_or(0, Values::len);
        for index in 0..length.min(PREVIEWED_ROWS - rows.len()) {
            let cells = part.iter().map(|values| values.get(index));
            let cells = cells.map(|cell| cell.map_or(Value::Null, |cell| cell.to_json()));
            rows.push(cells.collect());
        }
    }
    Ok(rows)
}
