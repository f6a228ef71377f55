//! Shows the table of a file.

use labdata_domain::{
    files::{
        DisplayedTableTooLarge, File, FileRefusal, FileState, MAX_DISPLAYED_TABLE_BYTES,
        MAX_DISPLAYED_TABLE_ROWS,
    },
    ids::FileId,
    people::{actor::Actor, scope::Scope},
};
use labdata_table_formats::read::{ReadError, ReadOptions, Source, TableSummary};

use crate::{
    Error, Services,
    reading::{Reader, on_thread},
    slots::Work,
};

/// Origin of a table.
pub enum PreviewSource {
    /// A file of the platform.
    File(FileId),
    /// Bytes that came with the request.
    Bytes(Box<dyn Source>),
}

/// Table of a file.
#[derive(Clone, Debug)]
pub struct TablePreview {
    /// The file; `None` for bytes that came with the request.
    pub file: Option<File>,
    /// Its first rows, with counts.
    pub table: TableSummary,
}

/// Reads the table of a file, or the head of a large one, and returns its first rows. A reader reads it, and ends when
/// the caller has left.
///
/// # Errors
/// `Forbidden` without the read scope; `NotFound`; `Invalid` for a file that
/// is no table, is too large, or awaits its bytes.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn preview_table(
    services: &Services,
    actor: &Actor,
    source: PreviewSource,
    options: ReadOptions,
    displayed_rows: usize,
) -> Result<TablePreview, Error> {
    actor.require(Scope::Read)?;
    let _slot = services.slots.enter(Work::ParsedTable, actor).await?;
    let (file, source) = open(services, actor, source).await?;
    let (reader, _guard) = Reader::start(services)?;
    let table = on_thread(move || {
        reader.preview(source, &options, MAX_DISPLAYED_TABLE_ROWS, displayed_rows)
    });
    match table.await? {
        Ok(table) => Ok(TablePreview { file, table }),
        Err(error @ ReadError::Source(_)) => Err(Error::Internal(error.to_string())),
        Err(refusal) => Err(Error::refused(refusal)),
    }
}

async fn open(
    services: &Services,
    actor: &Actor,
    source: PreviewSource,
) -> Result<(Option<File>, Box<dyn Source>), Error> {
    let id = match source {
        PreviewSource::Bytes(bytes) => return Ok((None, bytes)),
        PreviewSource::File(id) => id,
    };
    let file = services.files.get(actor.organization, id).await?;
    let FileState::Confirmed { object, bytes, .. } = &file.state else {
        return Err(Error::refused(FileRefusal::NotConfirmed));
    };
    if bytes.size > MAX_DISPLAYED_TABLE_BYTES {
        return Err(Error::refused(DisplayedTableTooLarge));
    }
    let source = services.blobs.open(actor.organization, *object).await?;
    Ok((Some(file), Box::new(source)))
}
