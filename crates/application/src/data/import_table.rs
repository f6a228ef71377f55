//! Imports the rows of a file into a table.

use std::{collections::BTreeMap, io};

use futures::future::join;
use labdata_domain::{
    catalog::{Catalog, Table},
    data::{
        import::{
            ImportColumns, ImportField, ImportRows, ImportWrite, Imported, LinkedColumns,
            LinkedTable, MAX_IMPORT_ROWS,
        },
        write::{Problem, Reason, WriteRequest},
    },
    ids::FileId,
    people::{actor::Actor, scope::Scope},
    refusal::{ErrorCode, Refuse, Resource},
    scalar::DataType,
};
use labdata_table_formats::read::{
    Doubt, DoubtScope, ImportTarget, ReadError, ReadOptions, Reading, RemoteTable, Source,
    header_line, is_archive,
};

use super::{
    import_file::{SentFile, StoredFile, store},
    write_data::{WriteData, choose_target, write_from},
};
use crate::{
    Error, Services,
    catalog::visible::{require_writable, visible_catalog},
    maintenance::disk_reserve::require_reserve,
    reading::{Reader, on_thread},
    slots::{Slot, Work},
};

/// Job of an import that names none.
const JOB_NAME: &str = "Import";

/// Maximum size of a text whose import waits for no large one, in bytes.
const SMALL_TEXT: u64 = 256 << 10;

/// The import to do.
#[derive(Clone, Debug)]
pub struct ImportTable {
    /// The write of the rows.
    pub write: ImportWrite,
    /// Columns for fields of the header; `None` to leave a field out.
    pub columns: BTreeMap<String, Option<String>>,
    /// For references: the columns of the referenced tables whose values the cells hold.
    pub lookups: BTreeMap<String, String>,
    /// Tables to whose rows those of the file refer, made of the same lines; those that others refer to first.
    pub linked: Vec<LinkedTable>,
    /// Options of the reading.
    pub options: ReadOptions,
    /// Id of the execution to record it under; one is created if it is missing.
    pub job_execution_id: Option<String>,
    /// The job of a created execution; `Import` unless given.
    pub job_name: Option<String>,
}

/// An import whose file is read.
pub struct ReadImport {
    request: WriteRequest,
    /// Columns of the fields, by table of the request.
    columns: Vec<ImportColumns>,
    reading: Reading,
    job_execution_id: Option<String>,
    job_name: String,
    /// The file; `None` on a dry run, which stores nothing.
    file: Option<StoredFile>,
    /// Held until the rows are written: they are in memory as long.
    slot: Slot,
}

/// Reads the file of an import to its end, and stores its bytes. A reader reads it, and ends when the
/// caller has left.
///
/// # Errors
/// `Forbidden` without the write scope; `NotFound` when there is no such table or
/// execution; [`Error::Problems`] if the table takes no rows, the execution has ended, or the file
/// is no table of at most [`MAX_IMPORT_ROWS`] rows whose fields all have a column;
/// `InsufficientStorage` when there is no room for the file.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn read_import(
    services: &Services,
    actor: &Actor,
    mut source: Box<dyn Source>,
    sent: SentFile,
    command: ImportTable,
) -> Result<ReadImport, Error> {
    actor.require(Scope::Write)?;
    let work = work_of(&mut *source, sent.size).map_err(|error| {
        Error::Internal(format!("the beginning of a file cannot be read: {error}"))
    })?;
    let slot = services.slots.enter(work, actor).await?;
    require_reserve(services)?;
    // An unknown execution is refused before a long file is read.
    let job_execution_id = command.job_execution_id.clone();
    let job_name = command.job_name.clone();
    let job_name = job_name.unwrap_or_else(|| JOB_NAME.to_owned());
    choose_target(
        services,
        actor,
        job_execution_id.clone(),
        Some(job_name.clone()),
    )
    .await?;
    let catalog = visible_catalog(services, actor).await?;
    let table = ImportColumns::table(&catalog, &command.write.table)
        .map_err(|problem| Error::Problems(vec![problem]))?
        .ok_or_else(|| Error::not_found(Resource::Table))?;
    require_writable(actor, &table)?;
    let (reader, guard) = Reader::start(services)?;
    let is_dry = command.write.dry_run;
    let read = on_thread(move || read(reader, source, &table, &catalog, command));
    let stored = async {
        if is_dry {
            Ok(None)
        } else {
            store(services, actor, sent).await.map(Some)
        }
    };
    // One reads while the other waits for the disk.
    let (read, stored) = join(read, stored).await;
    drop(guard);
    let (request, columns, reading) = match read.flatten() {
        Ok(read) => read,
        Err(error) => {
            if let Ok(Some(file)) = stored {
                file.discard(services, actor).await;
            }
            return Err(error);
        }
    };
    let file = stored?;
    Ok(ReadImport {
        request,
        columns,
        reading,
        job_execution_id,
        job_name,
        file,
        slot,
    })
}

/// The slots that an import takes: archives may hold far more than their size.
fn work_of(source: &mut dyn Source, size: u64) -> io::Result<Work> {
    Ok(if size <= SMALL_TEXT && !is_archive(source)? {
        Work::SmallImport
    } else {
        Work::Import
    })
}

/// An import that was written.
#[derive(Clone, Debug)]
pub struct WrittenImport {
    /// Result of the write.
    pub imported: Imported,
    /// Reading of the file.
    pub reading: Reading,
    /// The file; `None` on a dry run.
    pub file: Option<FileId>,
}

/// Writes the rows of an import: all of them, or none.
///
/// # Errors
/// See [`write_data`](super::write_data::write_data).
#[tracing::instrument(level = "debug", skip_all)]
pub async fn import_table(
    services: &Services,
    actor: &Actor,
    import: ReadImport,
) -> Result<WrittenImport, Error> {
    let ReadImport {
        request,
        columns,
        reading,
        job_execution_id,
        job_name,
        file,
        // Held until the rows are written, as they are in memory for as long.
        slot: _slot,
    } = import;
    let command = WriteData {
        // A line is at most one row of each table.
        max_rows: Some(request.tables.len() * MAX_IMPORT_ROWS),
        request,
        job_execution_id,
        job_name: Some(job_name),
    };
    let written = write_from(services, actor, command, file.as_ref()).await;
    // After another failure the write may have been applied all the same: the bytes stay.
    if let (Err(Error::Problems(_)), Some(file)) = (&written, &file) {
        file.discard(services, actor).await;
    }
    let (outcome, file) = written?;
    Ok(WrittenImport {
        file,
        imported: Imported::new(&outcome, &columns),
        reading,
    })
}

/// Reads the rows of a file into a write.
pub(super) fn read(
    reader: Reader,
    source: Box<dyn Source>,
    table: &Table,
    catalog: &Catalog,
    command: ImportTable,
) -> Result<(WriteRequest, Vec<ImportColumns>, Reading), Error> {
    let target = ImportColumns::known_fields(table, &command.columns, &command.linked);
    let target = ImportTarget::new(target);
    let mut file = reader
        .open_import(source, &command.options, MAX_IMPORT_ROWS, &target)
        .map_err(|error| refusal(&error))?;
    let fields: Vec<ImportField> = file
        .columns()
        .iter()
        .map(|column| ImportField {
            text: column.header.clone(),
            key: column.match_key(),
            // That of the values would be seconds.
            unit: if column.holds_times {
                column.header_unit.clone()
            } else {
                column.unit.clone()
            },
            holds_times: column.holds_times,
        })
        .collect();
    // Chosen by headers as the file has them, or as a preview shows them.
    let chosen = command.columns.into_iter();
    let mut chosen: BTreeMap<String, Option<String>> = chosen
        .map(|(header, column)| (header_line(&header), column))
        .collect();
    let linked: Vec<LinkedTable> = command.linked.into_iter().map(with_header_lines).collect();
    let linked =
        LinkedColumns::choose(&linked, &fields, table, catalog).map_err(Error::Problems)?;
    LinkedColumns::claim_fields(&linked, &mut chosen);
    let columns = ImportColumns::choose(&fields, &chosen, table)
        .and_then(|columns| columns.with_lookups(&command.lookups, table, catalog))
        .map_err(Error::Problems)?;
    let mut types = columns.types();
    LinkedColumns::add_types(&linked, &columns, &mut types)
        .map_err(|problem| Error::Problems(vec![problem]))?;
    columns
        .check_times(&linked, &fields)
        .and_then(|()| LinkedColumns::check_units(&linked, &columns, &fields))
        .map_err(Error::Problems)?;
    let units = columns.units(&linked);
    let doubts = doubts(&file, &types);
    if !doubts.is_empty() {
        return Err(Error::Problems(Problem::first_of(doubts)));
    }
    file.read_as(&types);
    file.read_in(&units);
    let mut rows = ImportRows::new(columns, command.write).with_linked(linked);
    while let Some(row) = file.next_row().map_err(|error| refusal(&error))? {
        // One bad line does not end the import: its problem is reported with the rest.
        if row.problems.is_empty() {
            rows.add(row.line, row.cells)
                .map_err(|problem| Error::Problems(vec![problem]))?;
        } else {
            for problem in row.problems {
                rows.refuse(row.line, problem.clone());
            }
        }
    }
    let reading = file.reading().clone();
    let (request, columns) = rows.into_request().map_err(Error::Problems)?;
    Ok((request, columns, reading))
}

/// The linked table with headers as a preview shows them.
fn with_header_lines(linked: LinkedTable) -> LinkedTable {
    let columns = linked.columns.into_iter();
    LinkedTable {
        columns: columns
            .map(|(header, column)| (header_line(&header), column))
            .collect(),
        ..linked
    }
}

/// The doubts that concern the columns of the table. Those of rows are found while they are read.
fn doubts(file: &RemoteTable, types: &[Option<DataType>]) -> Vec<Problem> {
    let is_number = |column: &usize| {
        let data_type = types.get(*column).copied().flatten();
        data_type.is_some_and(DataType::is_number)
    };
    let concerns = |doubt: &&Doubt| match (doubt.scope, &*doubt.code) {
        // Columns are chosen by their headers, which reports those that are repeated.
        (DoubtScope::Row | DoubtScope::Column, _) | (DoubtScope::Table, "duplicate_header") => {
            false
        }
        (DoubtScope::Table, "number_format") => doubt.columns.iter().any(is_number),
        (DoubtScope::Table, _) => true,
    };
    let doubts = file.doubts().iter().filter(concerns);
    doubts
        .map(|doubt| {
            let reason = Reason::new(ErrorCode::DoubtfulReading, doubt.advice());
            Problem::at(doubt.path.as_str(), reason)
        })
        .collect()
}

/// The error of a file that is no table.
fn refusal(error: &ReadError) -> Error {
    let path = match error {
        ReadError::Source(_) => return Error::Internal(error.to_string()),
        ReadError::NoSheets | ReadError::OnlyHidden(_) | ReadError::UnknownSheet { .. } => "sheet",
        ReadError::EndsAboveHeader { .. } => "last_row",
        ReadError::NoSuchRow(_) => "header_row",
        _ => "file",
    };
    Error::Problems(vec![Problem::at(
        path,
        Reason::new(error.code(), error.to_string()),
    )])
}
