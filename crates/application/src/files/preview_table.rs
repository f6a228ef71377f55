//! Shows the table of a file.

use std::{
    sync::{Arc, Weak},
    thread,
};

use futures::channel::oneshot;
use labdata_domain::{
    data::write::FileCell,
    files::{
        DisplayedTableTooLarge, File, FileRefusal, FileState, MAX_DISPLAYED_TABLE_BYTES,
        MAX_DISPLAYED_TABLE_ROWS,
    },
    ids::FileId,
    models::preview_cell,
    people::{actor::Actor, scope::Scope},
};
use labdata_table_formats::read::{
    Doubt, ReadColumn, ReadError, ReadOptions, Reading, Sheet, Source, open_table,
};
use serde_json::{Value, json};

use super::interrupted::Interrupted;
use crate::{Error, Services, slots::Work};

/// Number of examples of a column.
const EXAMPLES: usize = 3;

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
    /// Reading of the table.
    pub reading: Reading,
    /// The columns, in order.
    pub columns: Vec<PreviewedColumn>,
    /// Number of rows of the whole table.
    pub row_count: usize,
    /// The first rows, each with one value per column. Long texts are cut.
    pub rows: Vec<Vec<Value>>,
    /// The sheets of a workbook.
    pub sheets: Option<Vec<Sheet>>,
    /// Points that an import would have to guess, or refuses.
    pub doubts: Vec<Doubt>,
}

/// Column of a table.
#[derive(Clone, Debug)]
pub struct PreviewedColumn {
    /// Header, name, type and unit.
    pub column: ReadColumn,
    /// Number of its nulls.
    pub nulls: u64,
    /// Its first different values.
    pub examples: Vec<Value>,
}

/// Reads the table of a file to its end, and returns its first rows. A thread reads it; it stops when
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
    let _slot = services
        .slots
        .enter(Work::ParsedTable, actor.organization)
        .await?;
    let (file, source) = open(services, actor, source).await?;
    let caller = Arc::new(());
    let waiting = Arc::downgrade(&caller);
    let (done, outcome) = oneshot::channel();
    // Parsing may block for seconds, and tokio waits for its blocking threads when it shuts down.
    let thread = thread::Builder::new().name("table".to_owned());
    let spawned = thread.spawn(move || {
        // The receiver no longer exists if the caller has left.
        let _ = done.send(read(source, &options, displayed_rows, waiting));
    });
    spawned.map_err(|error| Error::Internal(format!("no thread for a table: {error}")))?;
    let table = outcome
        .await
        .map_err(|_| Error::Internal("the thread of a table ended early".to_owned()))?;
    // Until here the reader sees a living caller; a request that is dropped earlier stops it.
    drop(caller);
    match table {
        Ok(preview) => Ok(TablePreview { file, ..preview }),
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

fn read(
    source: Box<dyn Source>,
    options: &ReadOptions,
    displayed_rows: usize,
    caller: Weak<()>,
) -> Result<TablePreview, ReadError> {
    let source = Interrupted::new(source, move || caller.strong_count() == 0);
    let mut table = open_table(Box::new(source), options, MAX_DISPLAYED_TABLE_ROWS)?;
    let mut columns: Vec<PreviewedColumn> = table
        .columns()
        .iter()
        .map(|column| PreviewedColumn {
            column: column.clone(),
            nulls: 0,
            examples: Vec::new(),
        })
        .collect();
    let mut rows = Vec::new();
    while let Some(row) = table.next_row()? {
        let is_displayed = rows.len() < displayed_rows;
        let mut displayed = Vec::new();
        for (cell, column) in row.cells.iter().zip(&mut columns) {
            column.nulls += u64::from(cell.is_none());
            let needs_example = column.examples.len() < EXAMPLES && cell.is_some();
            if !is_displayed && !needs_example {
                continue;
            }
            let value = cell.as_ref().map_or(Value::Null, value_of);
            let value = preview_cell(value, column.column.data_type);
            if needs_example && !column.examples.contains(&value) {
                column.examples.push(value.clone());
            }
            displayed.push(value);
        }
        if is_displayed {
            rows.push(displayed);
        }
    }
    Ok(TablePreview {
        file: None,
        reading: table.reading().clone(),
        columns,
        row_count: table.row_count(),
        rows,
        sheets: table.sheets().map(<[Sheet]>::to_vec),
        doubts: table.doubts().to_vec(),
    })
}

/// The value of a cell as JSON.
fn value_of(cell: &FileCell) -> Value {
    match cell {
        FileCell::Boolean(flag) => json!(flag),
        FileCell::Integer(number) => json!(number),
        FileCell::Float(number) => json!(number),
        FileCell::Text(text) => json!(text),
        FileCell::Date(_) | FileCell::LocalTime(_) | FileCell::Instant(_) => {
            json!(cell.to_string())
        }
    }
}
