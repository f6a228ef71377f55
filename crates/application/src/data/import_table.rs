//! Imports the rows of a file into a table.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
    thread,
};

use futures::channel::oneshot;
use labdata_domain::{
    catalog::Table,
    data::{
        import::{ImportColumns, ImportRows, ImportWrite, Imported, MAX_IMPORT_ROWS},
        write::{FileCell, Problem, Reason, WriteRequest},
    },
    files::{FilePath, TableFormat},
    people::{actor::Actor, scope::Scope},
    refusal::{ErrorCode, Refuse, Resource},
};
use labdata_table_formats::read::{ReadError, RowSink, Source, read_rows};

use super::write_data::{WriteData, choose_target, write_data};
use crate::{
    Error, Ports,
    files::interrupted::Interrupted,
    maintenance::disk_reserve::require_reserve,
    slots::{Slot, Work},
};

/// The file to import.
pub struct ImportFile {
    /// Its name, whose extension tells the format.
    pub path: FilePath,
    /// Its bytes.
    pub source: Box<dyn Source>,
}

/// The import to do.
#[derive(Clone, Debug)]
pub struct ImportTable {
    /// The write of the rows.
    pub write: ImportWrite,
    /// Columns for fields of the header; `None` to leave a field out.
    pub columns: BTreeMap<String, Option<String>>,
    /// The sheet of a workbook, the first one unless given.
    pub sheet: Option<String>,
    /// Id of the execution to record it under; one is created if it is missing.
    pub job_execution_id: Option<String>,
}

/// An import whose file is read.
pub struct ReadImport {
    request: WriteRequest,
    columns: ImportColumns,
    job_execution_id: Option<String>,
    /// Held until the rows are written: they are in memory as long.
    slot: Slot,
}

/// Reads the file of an import to its end. A thread reads it; it stops when the caller has left.
///
/// # Errors
/// `Forbidden` without the write scope; `NotFound` when there is no such table or
/// execution; [`Error::Problems`] if the table takes no rows, the execution has ended, or the file
/// is no table of at most [`MAX_IMPORT_ROWS`] rows whose fields all have a column.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn read_import(
    ports: &Ports,
    actor: &Actor,
    file: ImportFile,
    command: ImportTable,
) -> Result<ReadImport, Error> {
    actor.require(Scope::Write)?;
    let slot = ports.slots.enter(Work::Import, actor.organization).await?;
    require_reserve(ports)?;
    // An unknown execution is refused before a long file is read.
    choose_target(ports, actor, command.job_execution_id.clone(), None).await?;
    let catalog = ports.catalog.snapshot(actor.organization).await?;
    let table = ImportColumns::table(&catalog, &command.write.table)
        .map_err(|problem| Error::Problems(vec![problem]))?
        .ok_or_else(|| Error::not_found(Resource::Table))?;
    let format = TableFormat::of(&file.path).ok_or_else(|| {
        let unknown = TableFormat::unknown(&file.path);
        Error::Problems(vec![Problem::at(
            "file",
            Reason::new(ErrorCode::UnknownFormat, unknown.to_string()),
        )])
    })?;
    let job_execution_id = command.job_execution_id.clone();
    let caller = Arc::new(());
    let waiting = Arc::downgrade(&caller);
    let (done, outcome) = oneshot::channel();
    let thread = thread::Builder::new().name("import".to_owned());
    // Not on a blocking thread of tokio, for whose end its shutdown would wait.
    let spawned = thread.spawn(move || {
        let read = read(file.source, format, &table, command, waiting);
        // The receiver no longer exists if the caller has left.
        let _ = done.send(read);
    });
    spawned.map_err(|error| Error::Internal(format!("no thread for an import: {error}")))?;
    let read = outcome
        .await
        .map_err(|_| Error::Internal("the thread of an import ended early".to_owned()))?;
    // Until here the thread sees a living caller; a request that is dropped earlier stops it.
    drop(caller);
    let (request, columns) = read?;
    Ok(ReadImport {
        request,
        columns,
        job_execution_id,
        slot,
    })
}

/// Writes the rows of an import: all of them, or none.
///
/// # Errors
/// See [`write_data`].
#[tracing::instrument(level = "debug", skip_all)]
pub async fn import_table(
    ports: &Ports,
    actor: &Actor,
    import: ReadImport,
) -> Result<Imported, Error> {
    let ReadImport {
        request,
        columns,
        job_execution_id,
        // Held until the rows are written, as they are in memory for as long.
        slot: _slot,
    } = import;
    let command = WriteData {
        request,
        job_execution_id,
        job_name: None,
        max_rows: Some(MAX_IMPORT_ROWS),
    };
    let outcome = write_data(ports, actor, command).await?;
    Ok(Imported::new(&outcome, &columns))
}

fn read(
    source: Box<dyn Source>,
    format: TableFormat,
    table: &Table,
    command: ImportTable,
    caller: Weak<()>,
) -> Result<(WriteRequest, ImportColumns), Error> {
    let ImportTable {
        write,
        columns,
        sheet,
        ..
    } = command;
    let source = Interrupted::new(source, move || caller.strong_count() == 0);
    let mut sink = Sink {
        table,
        chosen: columns,
        rows: None,
        problems: Vec::new(),
    };
    read_rows(
        Box::new(source),
        format,
        sheet.as_deref(),
        MAX_IMPORT_ROWS,
        &mut sink,
    )
    .map_err(|error| refusal(&error))?;
    if !sink.problems.is_empty() {
        return Err(Error::Problems(sink.problems));
    }
    let rows = sink.rows.ok_or_else(|| refusal(&ReadError::NoHeader))?;
    rows.into_request(write).map_err(Error::Problems)
}

/// Rows of the file, and what ended their reading.
struct Sink<'t> {
    table: &'t Table,
    chosen: BTreeMap<String, Option<String>>,
    rows: Option<ImportRows>,
    problems: Vec<Problem>,
}

impl RowSink for Sink<'_> {
    fn header(&mut self, names: &[String]) -> Option<Vec<bool>> {
        match ImportColumns::choose(names, &self.chosen, self.table) {
            Ok(columns) => {
                let wanted = columns.wanted();
                self.rows = Some(ImportRows::new(columns));
                Some(wanted)
            }
            Err(problems) => {
                self.problems = problems;
                None
            }
        }
    }

    fn row(&mut self, line: u64, cells: &mut [Option<FileCell>]) -> bool {
        let Some(rows) = &mut self.rows else {
            return false;
        };
        match rows.add(line, cells) {
            Ok(()) => true,
            Err(problem) => {
                self.problems.push(problem);
                false
            }
        }
    }

    fn refused(&mut self, line: u64, reason: &ReadError) {
        if let Some(rows) = &mut self.rows {
            rows.refuse(line, reason.to_string());
        }
    }
}

/// The error of a file that is no table.
fn refusal(error: &ReadError) -> Error {
    let path = match error {
        ReadError::Source(_) => return Error::Internal(error.to_string()),
        ReadError::NoSheets | ReadError::UnknownSheet { .. } => "sheet",
        _ => "file",
    };
    Error::Problems(vec![Problem::at(
        path,
        Reason::new(error.code(), error.to_string()),
    )])
}
