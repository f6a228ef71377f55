//! Encoding of rows, in the thread of a snapshot.

use futures::{StreamExt, channel::mpsc::Receiver, executor::block_on};
use labdata_domain::{
    models::{DatasetColumn, DatasetRefusal, MAX_DATASET_ROWS, check_column_names},
    refusal::{ErrorCode, Refusal},
    scalar::DataType,
};
use labdata_table_formats::{
    FormatError, SnapshotWriter,
    read::{ReadError, Reading, RemoteTable},
};

use super::Outlet;

/// Part of a query's result.
pub(in crate::models) enum Rows {
    /// Names and types of the columns, first.
    Columns(Vec<(String, DataType)>),
    /// Rows, each the text of a JSON array.
    Part(Vec<String>),
    /// The result is whole.
    End,
}

/// Table that was written.
#[derive(Debug)]
pub(in crate::models) struct WrittenTable {
    pub(in crate::models) columns: Vec<DatasetColumn>,
    pub(in crate::models) row_count: u64,
    /// Reading of the file; `None` for a query.
    pub(in crate::models) reading: Option<Reading>,
}

/// Why no table was written.
#[derive(Debug)]
pub(in crate::models) enum SnapshotError {
    /// The data cannot be a dataset; for the person who asked.
    Refused(Refusal),
    /// The source of the rows or the storage failed, or the caller has left.
    Abandoned,
    /// Something else failed.
    Failed(String),
}

impl From<DatasetRefusal> for SnapshotError {
    fn from(refusal: DatasetRefusal) -> Self {
        Self::Refused(refusal.into())
    }
}

impl From<FormatError> for SnapshotError {
    fn from(error: FormatError) -> Self {
        match error {
            FormatError::Unrepresentable(text) => {
                Self::Refused(Refusal::invalid(ErrorCode::Unrepresentable, text))
            }
            FormatError::Failed(text) => Self::Failed(text),
        }
    }
}

impl From<ReadError> for SnapshotError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Source(_) => Self::Failed(error.to_string()),
            ReadError::TooManyRows(_) => DatasetRefusal::TooManyRows.into(),
            refusal => Self::Refused(refusal.into()),
        }
    }
}

fn begin(columns: Vec<(String, DataType)>) -> Result<SnapshotWriter, SnapshotError> {
    check_column_names(columns.iter().map(|(name, _)| name.as_str()))?;
    Ok(SnapshotWriter::new(columns)?)
}

fn finish(writer: SnapshotWriter, outlet: &mut Outlet) -> Result<WrittenTable, SnapshotError> {
    let written = writer.finish()?;
    outlet.send(written.rest)?;
    Ok(WrittenTable {
        columns: written.columns,
        row_count: written.row_count,
        reading: None,
    })
}

/// Writes the result of a query.
pub(in crate::models) fn write_rows(
    mut parts: Receiver<Rows>,
    outlet: &mut Outlet,
) -> Result<WrittenTable, SnapshotError> {
    let Some(Rows::Columns(columns)) = block_on(parts.next()) else {
        return Err(SnapshotError::Abandoned);
    };
    let mut writer = begin(columns)?;
    loop {
        match block_on(parts.next()) {
            Some(Rows::Part(rows)) => outlet.send(writer.write_json_rows(rows)?)?,
            Some(Rows::End) => return finish(writer, outlet),
            Some(Rows::Columns(_)) | None => return Err(SnapshotError::Abandoned),
        }
    }
}

/// Writes the table of a file.
pub(in crate::models) fn write_file(
    table: &mut RemoteTable,
    outlet: &mut Outlet,
) -> Result<WrittenTable, SnapshotError> {
    // A dataset is made of values that are as they are in the file, so nothing is guessed.
    table.check()?;
    let columns = table.columns().iter();
    let columns = columns.map(|column| (column.header.clone(), column.data_type));
    let mut writer = begin(columns.collect())?;
    while let Some(part) = table.next_part()? {
        outlet.send(writer.write_values(&part)?)?;
        if usize::try_from(writer.row_count()).is_ok_and(|rows| rows > MAX_DATASET_ROWS) {
            return Err(DatasetRefusal::TooManyRows.into());
        }
    }
    Ok(WrittenTable {
        reading: Some(table.reading().clone()),
        ..finish(writer, outlet)?
    })
}
