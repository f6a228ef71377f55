//! Messages as JSON.

use std::{collections::BTreeMap, io::ErrorKind};

use labdata_domain::scalar::DataType;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::read::{
    Doubt, ReadColumn, ReadError, ReadOptions, Reading, Sheet,
    preview::{PreviewedColumn, TableSummary},
};

/// Source to read.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    /// Length of the file in bytes.
    pub(super) length: u64,
    pub(super) options: Map<String, Value>,
    pub(super) max_rows: usize,
    /// Number of rows of a preview; `None` for all rows.
    pub(super) displayed_rows: Option<usize>,
    /// Fields that an import can store; `None` if the file is read for something else.
    pub(super) import_fields: Option<Vec<String>>,
}

impl Request {
    /// A request for all rows; the length is that of a source.
    pub(super) fn new(options: &ReadOptions, max_rows: usize) -> Self {
        Self {
            length: 0,
            options: options.to_json(),
            max_rows,
            displayed_rows: None,
            import_fields: None,
        }
    }
}

/// A column, without the index that only the reader needs.
#[derive(Debug, Serialize, Deserialize)]
struct Column {
    header: String,
    name: String,
    data_type: String,
    unit: Option<String>,
    header_unit: Option<String>,
    holds_times: bool,
}

impl From<&ReadColumn> for Column {
    fn from(column: &ReadColumn) -> Self {
        Self {
            header: column.header.clone(),
            name: column.name.clone(),
            data_type: column.data_type.as_str().to_owned(),
            unit: column.unit.clone(),
            header_unit: column.header_unit.clone(),
            holds_times: column.holds_times,
        }
    }
}

impl Column {
    fn into_column(self) -> Option<ReadColumn> {
        let data_type = DataType::from_name(&self.data_type)?;
        Some(ReadColumn::new(
            self.header,
            self.name,
            data_type,
            self.unit,
            self.header_unit,
            self.holds_times,
        ))
    }
}

/// Facts that precede the rows.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Head {
    reading: Map<String, Value>,
    columns: Vec<Column>,
    doubts: Vec<Doubt>,
    sheets: Option<Vec<Sheet>>,
    row_count: usize,
}

/// [`Head`], as it was read.
#[derive(Debug)]
pub(super) struct TableHead {
    pub(super) reading: Reading,
    pub(super) columns: Vec<ReadColumn>,
    pub(super) doubts: Vec<Doubt>,
    pub(super) sheets: Option<Vec<Sheet>>,
    pub(super) row_count: usize,
}

impl Head {
    pub(super) fn new<'c>(
        reading: &Reading,
        columns: impl IntoIterator<Item = &'c ReadColumn>,
        doubts: &[Doubt],
        sheets: Option<&[Sheet]>,
        row_count: usize,
    ) -> Self {
        Self {
            reading: reading.to_json(),
            columns: columns.into_iter().map(Column::from).collect(),
            doubts: doubts.to_vec(),
            sheets: sheets.map(<[Sheet]>::to_vec),
            row_count,
        }
    }

    /// Returns what the message says; `None` if it cannot be.
    pub(super) fn into_table(self) -> Option<TableHead> {
        let columns = self.columns.into_iter().map(Column::into_column);
        Some(TableHead {
            reading: Reading::from_json(&self.reading)?,
            columns: columns.collect::<Option<_>>()?,
            doubts: self.doubts,
            sheets: self.sheets,
            row_count: self.row_count,
        })
    }
}

/// The first rows of a table.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Preview {
    head: Head,
    nulls: Vec<u64>,
    examples: Vec<Vec<Value>>,
    rows: Vec<Vec<Value>>,
    /// False if only the beginning of the file was read, so that `row_count` is unknown.
    is_whole: bool,
    rows_read: usize,
}

impl From<TableSummary> for Preview {
    fn from(summary: TableSummary) -> Self {
        let columns = || summary.columns.iter();
        Self {
            head: Head::new(
                &summary.reading,
                columns().map(|column| &column.column),
                &summary.doubts,
                summary.sheets.as_deref(),
                summary.row_count.unwrap_or_default(),
            ),
            nulls: columns().map(|column| column.nulls).collect(),
            examples: columns().map(|column| column.examples.clone()).collect(),
            is_whole: summary.row_count.is_some(),
            rows_read: summary.rows_read,
            rows: summary.rows,
        }
    }
}

impl Preview {
    /// Returns what the message says; `None` if it cannot be.
    pub(super) fn into_summary(self) -> Option<TableSummary> {
        let head = self.head.into_table()?;
        let width = head.columns.len();
        let has_width = self.rows.iter().all(|row| row.len() == width);
        if !has_width || self.nulls.len() != width || self.examples.len() != width {
            return None;
        }
        let counts = self.nulls.into_iter().zip(self.examples);
        let columns = head.columns.into_iter().zip(counts);
        Some(TableSummary {
            reading: head.reading,
            columns: columns
                .map(|(column, (nulls, examples))| PreviewedColumn {
                    column,
                    nulls,
                    examples,
                })
                .collect(),
            row_count: self.is_whole.then_some(head.row_count),
            rows_read: self.rows_read,
            rows: self.rows,
            sheets: head.sheets,
            doubts: head.doubts,
        })
    }
}

/// Counts after the last row.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Counts {
    pub(super) null_text_numbers: u64,
    pub(super) null_error_cells: u64,
}

/// Types and rules by which the columns are read.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Target {
    /// Types, in order: as found unless given, `None` in the list to leave a column out.
    pub(super) types: Option<Vec<Option<String>>>,
    /// Units of the columns of a table; `None` for the file's own.
    pub(super) units: Vec<Option<String>>,
}

/// Types as which the columns are read, in order; `None` to leave a column out.
pub(super) fn types_to_json(types: &[Option<DataType>]) -> Vec<Option<String>> {
    types
        .iter()
        .map(|data_type| Some(data_type.as_ref()?.as_str().to_owned()))
        .collect()
}

/// Returns the types of a message. A name that is none leaves the column out.
pub(super) fn types_from_json(names: &[Option<String>]) -> Vec<Option<DataType>> {
    names
        .iter()
        .map(|name| DataType::from_name(name.as_deref()?))
        .collect()
}

/// Why a file is not read. Failures of the source are those of the platform, and of the memory.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Failure {
    /// The platform could not read the file, and knows why.
    Source,
    /// The reader could not begin; for the log.
    Internal(String),
    /// The file is refused.
    Refused(ReadError),
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        match error {
            // Of a library that could not reserve memory, and of a message that is too long.
            ReadError::Source(error)
                if matches!(
                    error.kind(),
                    ErrorKind::OutOfMemory | ErrorKind::FileTooLarge
                ) =>
            {
                Self::Refused(ReadError::TooLarge)
            }
            ReadError::Source(_) => Self::Source,
            error => Self::Refused(error),
        }
    }
}

impl Reading {
    /// Reads what [`Reading::to_json`] renders.
    fn from_json(object: &Map<String, Value>) -> Option<Self> {
        let counts: BTreeMap<&str, u64> = object
            .iter()
            .filter_map(|(name, value)| Some((name.as_str(), value.as_u64()?)))
            .collect();
        let count = |name: &str| counts.get(name).copied();
        Some(Self {
            options: ReadOptions::from_json(object).ok()?,
            lines_above: count("lines_above")?,
            units_row: count("units_row"),
            lines_below: count("lines_below")?,
            blank_lines: count("blank_lines")?,
            short_rows: count("short_rows")?,
            null_text_numbers: count("null_text_numbers")?,
            null_error_cells: count("null_error_cells")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Error};

    use super::*;
    use crate::read::{open_table, preview::summarize};

    fn preview() -> Preview {
        let source = Box::new(Cursor::new(b"a,b\n1,2\n3,\n".to_vec()));
        let mut table = open_table(source, &ReadOptions::default(), 9).unwrap();
        Preview::from(summarize(&mut table, 9).unwrap())
    }

    #[test]
    fn a_preview_of_another_width_than_its_columns_is_none() {
        let mut whole = preview().into_summary().unwrap();
        assert_eq!((whole.row_count, whole.rows_read), (Some(2), 2));
        assert_eq!(whole.columns.pop().unwrap().nulls, 1);
        let mut cut = preview();
        cut.is_whole = false;
        assert_eq!(cut.into_summary().unwrap().row_count, None);
        for change in [
            |preview: &mut Preview| preview.rows[0].clear(),
            |preview: &mut Preview| preview.rows[1].push(Value::Null),
            |preview: &mut Preview| preview.nulls.push(0),
            |preview: &mut Preview| preview.examples.truncate(1),
            |preview: &mut Preview| preview.head.columns[0].data_type.clear(),
        ] {
            let mut changed = preview();
            change(&mut changed);
            assert!(changed.into_summary().is_none());
        }
    }

    #[test]
    fn memory_that_is_not_there_is_no_failure_of_the_source() {
        let of = |kind: ErrorKind| Failure::from(ReadError::Source(Error::from(kind)));
        for kind in [ErrorKind::OutOfMemory, ErrorKind::FileTooLarge] {
            assert!(
                matches!(of(kind), Failure::Refused(ReadError::TooLarge)),
                "{kind}"
            );
        }
        assert!(matches!(of(ErrorKind::TimedOut), Failure::Source));
        let damaged = Failure::from(ReadError::Damaged);
        assert!(matches!(damaged, Failure::Refused(ReadError::Damaged)));
    }

    #[test]
    fn a_type_that_is_none_leaves_its_column_out() {
        let types = [Some(DataType::Integer), None, Some(DataType::Text)];
        let mut names = types_to_json(&types);
        assert_eq!(types_from_json(&names), types);
        names[0] = Some("number".to_owned());
        assert_eq!(types_from_json(&names)[0], None);
    }
}
