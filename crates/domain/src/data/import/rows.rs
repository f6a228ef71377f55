//! Rows of a file, as those of a table write.

use std::collections::BTreeMap;

use super::{
    BlankCells, ImportColumns, ImportMode, LinkedColumns, MAX_IMPORT_CELLS, MAX_IMPORT_TEXT,
    linked_rows::LinkedRows,
};
use crate::{
    catalog::Column,
    data::write::{
        FileCell, FileColumn, FileLines, OnMatch, Problem, Reason, RowNames, Rows, TableWrite,
        WriteOutcome, WriteRequest, cell::Cell,
    },
    ids::ExecutionId,
    refusal::ErrorCode,
};

/// Rows of a file that are read one after the other.
#[derive(Debug)]
pub struct ImportRows {
    columns: ImportColumns,
    write: ImportWrite,
    rows: Rows,
    lines: Vec<u64>,
    linked: LinkedRows,
    problems: Vec<Problem>,
    cells: usize,
    /// Size of all texts in bytes.
    text: usize,
}

impl ImportRows {
    /// No rows yet.
    #[must_use]
    pub fn new(columns: ImportColumns, write: ImportWrite) -> Self {
        let mut rows = Rows::default();
        for column in columns.columns.iter().flatten() {
            // The cells of a reference are read with the catalog, which knows the rows that they name.
            let file = column.references.is_none().then(|| {
                let blanks_are_null = write.cell_for(column, None).is_some();
                FileColumn::new(column.data_type, blanks_are_null)
            });
            rows.add_column(&column.name, file);
        }
        Self {
            columns,
            write,
            rows,
            lines: Vec::new(),
            linked: LinkedRows::default(),
            problems: Vec::new(),
            cells: 0,
            text: 0,
        }
    }

    /// Makes rows of linked tables of the same lines.
    #[must_use]
    pub fn with_linked(self, tables: Vec<LinkedColumns>) -> Self {
        Self {
            linked: LinkedRows::new(tables),
            ..self
        }
    }

    /// Adds the row of a line: a cell, or `None` for a blank one, per field of the header. Takes the
    /// cells.
    ///
    /// # Errors
    /// The problem of a file with more than [`MAX_IMPORT_CELLS`] cells or [`MAX_IMPORT_TEXT`] bytes of text; the
    /// rest need not be read.
    pub fn add(&mut self, line: u64, cells: &mut [Option<FileCell>]) -> Result<(), Problem> {
        self.rows.begin_row();
        self.lines.push(line);
        // First, because the cells are taken below.
        let references = if self.linked.is_empty() {
            Vec::new()
        } else {
            self.linked.add(line, cells)
        };
        let mut position = 0;
        for (column, cell) in self.columns.columns.iter().zip(cells) {
            let (Some(column), cell) = (column, cell.take()) else {
                continue;
            };
            if let Some(FileCell::Text(text)) = &cell {
                self.text += text.len();
            }
            if column.references.is_none() {
                self.rows.push_file_cell(position, cell);
            } else if let Some(cell) = self.write.cell_for(column, cell) {
                self.rows.set(position, &column.name, cell);
            }
            position += 1;
        }
        for (column, label) in references {
            match label {
                Some(label) => {
                    let label = Cell::Text(format!("@{label}"));
                    self.rows.set(position, &column.name, label);
                }
                None => {
                    if let Some(cell) = self.write.cell_for(&column, None) {
                        self.rows.set(position, &column.name, cell);
                    }
                }
            }
            position += 1;
        }
        self.cells += position;
        let limit = if self.cells + self.linked.cells > MAX_IMPORT_CELLS {
            format!("{MAX_IMPORT_CELLS} cells")
        } else if self.text + self.linked.text > MAX_IMPORT_TEXT {
            format!("{} MiB of text", MAX_IMPORT_TEXT >> 20)
        } else {
            return Ok(());
        };
        let message =
            format!("the file has more than {limit} in columns of the table; import it in parts");
        let reason = Reason::new(ErrorCode::TooManyValues, message);
        Err(Problem::at("file", reason))
    }

    /// Notes a line that is no row, and why.
    pub fn refuse(&mut self, line: u64, message: String) {
        self.problems.push(Problem::at(
            format!("rows[{line}]"),
            Reason::new(ErrorCode::UnreadableRow, message),
        ));
    }

    /// The request of a write of all rows, and the columns of the fields by table, in its order: the linked
    /// tables, then the import's own.
    ///
    /// # Errors
    /// The problems of the lines that are no rows, or contradict each other.
    pub fn into_request(mut self) -> Result<(WriteRequest, Vec<ImportColumns>), Vec<Problem>> {
        self.problems.append(&mut self.linked.problems);
        if !self.problems.is_empty() {
            return Err(Problem::first_of(self.problems));
        }
        self.rows.retain_given();
        let write = self.write;
        let (mut tables, mut lines, mut columns) = (Vec::new(), Vec::new(), Vec::new());
        for (table, of_table, fields) in self.linked.into_writes() {
            tables.push(table);
            lines.push(of_table);
            columns.push(fields);
        }
        tables.push(TableWrite {
            table: write.table,
            rows: self.rows,
            mode: write.mode.mode(),
            key: write.key,
            on_match: write.on_match,
            lookups: self.columns.lookups.clone(),
            ..TableWrite::default()
        });
        lines.push(FileLines {
            lines: self.lines.into(),
            linked: None,
        });
        columns.push(self.columns);
        let request = WriteRequest {
            tables,
            dry_run: write.dry_run,
            row_names: RowNames::Lines(lines.into()),
            ..WriteRequest::default()
        };
        Ok((request, columns))
    }
}

/// The write of an import's rows.
#[derive(Clone, Debug)]
pub struct ImportWrite {
    /// The table.
    pub table: String,
    /// Action on the rows.
    pub mode: ImportMode,
    /// Columns that identify an existing row; the primary key unless given.
    pub key: Option<Vec<String>>,
    /// Effect on the columns of a matched row.
    pub on_match: OnMatch,
    /// Treatment of blank cells; the mode's unless given ([`ImportMode::blank_cells`]).
    pub blank: Option<BlankCells>,
    /// Apply everything, then roll back.
    pub dry_run: bool,
}

impl ImportWrite {
    /// A cell of the write. A blank one is null, or left out, where nothing is changed or the default
    /// applies.
    fn cell_for(&self, column: &Column, cell: Option<FileCell>) -> Option<Cell> {
        if let Some(cell) = cell {
            return Some(Cell::File(cell));
        }
        let mut key = self.key.iter().flatten();
        let is_key = key.any(|name| *name == column.name);
        let is_left_out = match self.blank.unwrap_or(self.mode.blank_cells()) {
            // A key without a value is a problem of this cell; null reports it there.
            BlankCells::Keep => !is_key,
            BlankCells::Null => false,
        };
        // So is a required column without a value. Not given, a default applies.
        let may_be_null = column.is_nullable || column.is_required_to_create();
        (may_be_null && !is_left_out).then_some(Cell::Null)
    }
}

/// The result of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The execution that it is recorded under; `None` on a dry run.
    pub execution: Option<ExecutionId>,
    /// The tables that were written: the linked ones, then the import's own.
    pub tables: Vec<ImportedTable>,
}

/// A table that an import wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportedTable {
    /// The table.
    pub table: String,
    /// Rows created.
    pub created: u64,
    /// Rows that matched.
    pub updated: u64,
    /// Names of the fields that were read, with their columns.
    pub columns: BTreeMap<String, String>,
}

impl Imported {
    /// The result of the write of an import. `columns` are those of its tables, in order.
    #[must_use]
    pub fn new(outcome: &WriteOutcome, columns: &[ImportColumns]) -> Self {
        let tables = outcome.tables.iter().zip(columns);
        let tables = tables.map(|(table, columns)| {
            let fields = columns.chosen();
            ImportedTable {
                table: table.table.clone(),
                created: table.created,
                updated: table.updated,
                columns: fields
                    .map(|(field, column)| (field.to_owned(), column.to_owned()))
                    .collect(),
            }
        });
        Self {
            execution: outcome.execution,
            tables: tables.collect(),
        }
    }

    /// The import's own table.
    #[must_use]
    pub fn own(&self) -> ImportedTable {
        self.tables.last().cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        catalog::{Catalog, CatalogVersion, ColumnDefinition, TableDefinition},
        data::import::ImportField,
        scalar::DataType,
    };

    #[test]
    fn an_import_writes_in_the_mode_of_its_name() {
        for mode in ImportMode::ALL {
            let name = match mode {
                ImportMode::Insert => "insert",
                ImportMode::Upsert => "upsert",
            };
            assert_eq!((mode.as_str(), mode.mode().as_str()), (name, name));
        }
    }

    #[test]
    fn cells_have_a_limit_in_total() {
        const WIDTH: usize = 400;
        let name = |index: usize| format!("c{index}");
        let columns = (0..WIDTH).map(|index| ColumnDefinition::new(name(index), DataType::Boolean));
        let known = Catalog::new(CatalogVersion(1), Vec::new());
        let table = TableDefinition::new("wide", columns.collect()).resolve(&known);
        let catalog = Catalog::new(CatalogVersion(1), vec![table.unwrap()]);
        let table = ImportColumns::table(&catalog, "wide").unwrap().unwrap();
        let fields = (0..WIDTH).map(|index| ImportField {
            text: name(index),
            key: name(index),
            unit: None,
            holds_times: false,
        });
        let fields: Vec<_> = fields.collect();
        let columns = ImportColumns::choose(&fields, &BTreeMap::new(), &table).unwrap();
        let write = ImportWrite {
            table: "wide".to_owned(),
            mode: ImportMode::Insert,
            key: None,
            on_match: OnMatch::default(),
            blank: None,
            dry_run: false,
        };
        let mut rows = ImportRows::new(columns, write);
        let mut cells = vec![None; WIDTH];
        for line in 0..MAX_IMPORT_CELLS / WIDTH {
            let line = u64::try_from(line).unwrap();
            assert_eq!(rows.add(line, &mut cells), Ok(()), "{line}");
        }
        let refused = rows.add(99_999, &mut cells).unwrap_err();
        assert!(refused.message.contains("5000000 cells"), "{refused:?}");
    }
}
