//! Shows the table of a file.

use std::{
    sync::{Arc, Weak},
    thread,
};

use futures::channel::oneshot;
use labdata_domain::{
    files::{File, FileRefusal, FileState, MAX_SHOWN_TABLE_ROWS, TableFormat},
    ids::FileId,
    models::preview_cell,
    people::{actor::Actor, scope::Scope},
    scalar::{DataType, Values},
};
use labdata_ports::files::blob::BlobReader;
use labdata_table_formats::read::{ReadError, open_table};
use serde_json::Value;

use super::interrupted::Interrupted;
use crate::{Error, Services, slots::Work};

/// Table of a file.
#[derive(Clone, Debug)]
pub struct ParsedTable {
    /// The file.
    pub file: File,
    /// Names and types of the columns, in order. Names may repeat.
    pub columns: Vec<(String, DataType)>,
    /// Number of rows of the whole table.
    pub row_count: usize,
    /// The first rows, each with one value per column. Long texts are cut.
    pub rows: Vec<Vec<Value>>,
}

/// Reads the table of a file to its end, and returns its first rows. A thread reads it; it stops when
/// the caller has left.
///
/// # Errors
/// `Forbidden` without the read scope; `NotFound`; `Invalid` for a file that
/// is no table, is too large, or awaits its bytes.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn parse_table(
    services: &Services,
    actor: &Actor,
    id: FileId,
    displayed_rows: usize,
) -> Result<ParsedTable, Error> {
    actor.require(Scope::Read)?;
    let _slot = services
        .slots
        .enter(Work::ParsedTable, actor.organization)
        .await?;
    let file = services.files.get(actor.organization, id).await?;
    let FileState::Confirmed { object, bytes, .. } = &file.state else {
        return Err(Error::refused(FileRefusal::NotConfirmed));
    };
    let format = TableFormat::display(&file.path, bytes.size).map_err(Error::refused)?;
    let source = services.blobs.open(actor.organization, *object).await?;
    let caller = Arc::new(());
    let waiting = Arc::downgrade(&caller);
    let (done, outcome) = oneshot::channel();
    // Parsing may block for seconds, and tokio waits for its blocking threads when it shuts down.
    let thread = thread::Builder::new().name("table".to_owned());
    let spawned = thread.spawn(move || {
        // The receiver no longer exists if the caller has left.
        let _ = done.send(read(source, format, displayed_rows, waiting));
    });
    spawned.map_err(|error| Error::Internal(format!("no thread for a table: {error}")))?;
    let table = outcome
        .await
        .map_err(|_| Error::Internal("the thread of a table ended early".to_owned()))?;
    // Until here the reader sees a living caller; a request that is dropped earlier stops it.
    drop(caller);
    match table {
        Ok(table) => Ok(ParsedTable {
            file,
            columns: table.columns,
            row_count: table.row_count,
            rows: table.rows,
        }),
        Err(error @ ReadError::Source(_)) => Err(Error::Internal(error.to_string())),
        Err(refusal) => Err(Error::refused(refusal)),
    }
}

/// Columns and rows of a table.
struct Table {
    columns: Vec<(String, DataType)>,
    row_count: usize,
    rows: Vec<Vec<Value>>,
}

fn read(
    source: Box<dyn BlobReader>,
    format: TableFormat,
    displayed_rows: usize,
    caller: Weak<()>,
) -> Result<Table, ReadError> {
    let source = Interrupted::new(source, move || caller.strong_count() == 0);
    let mut reader = open_table(Box::new(source), format, MAX_SHOWN_TABLE_ROWS)?;
    let columns = reader.columns().to_vec();
    let (mut row_count, mut rows) = (0_usize, Vec::new());
    while let Some(part) = reader.next_part()? {
        let length = part.first().map_or(0, Values::len);
        for index in 0..length.min(displayed_rows.saturating_sub(rows.len())) {
            let cells = part.iter().zip(&columns).map(|(values, (_, data_type))| {
                let cell = values.get(index);
                preview_cell(cell.map_or(Value::Null, |cell| cell.to_json()), *data_type)
            });
            rows.push(cells.collect());
        }
        row_count = row_count.saturating_add(length);
        if row_count > MAX_SHOWN_TABLE_ROWS {
            return Err(ReadError::TooManyRows(MAX_SHOWN_TABLE_ROWS));
        }
    }
    Ok(Table {
        columns,
        row_count,
        rows,
    })
}
