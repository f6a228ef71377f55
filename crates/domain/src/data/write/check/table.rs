//! Reading one table write.

mod keys;

use std::sync::Arc;

use time::OffsetDateTime;

use super::checked::{CheckedColumn, CheckedTable, Content};
use crate::{
    catalog::{Catalog, ColumnRef, KeyedTable, PlatformTable, SystemColumn, Table},
    data::write::{
        FileColumn, IF_UPDATED_AT_KEY, InputColumn, LABEL_KEY, Mode, RowAddress, TableWrite,
        cell::Cell,
        problem::{Reason, missing_column, must_not_be_null, no_column, quoted},
        problem_list::ProblemList,
        reference::{Reference, ReferenceReader, no_table},
    },
    refusal::ErrorCode,
    scalar::{DataType, Scalar, Values},
};

/// Checks a table write; `None` if its table cannot be written.
pub(super) fn check(
    index: usize,
    write: &TableWrite,
    catalog: &Catalog,
    references: &mut ReferenceReader<'_>,
    problems: &mut ProblemList,
) -> Option<CheckedTable> {
    let table = match writable_table(catalog, &write.table) {
        Ok(table) => table,
        Err(message) => {
            problems.at_table(index, "table", || message);
            // Nothing below the table is known, so its cells are not read; labels of its rows were, and are no second
            // problem.
            return None;
        }
    };
    let mut checker = TableChecker {
        index,
        table: &table,
        write,
        references,
        problems,
    };
    let if_updated_at = checker.expected_times();
    let (key, columns) = checker.check();
    Some(CheckedTable {
        index,
        table,
        mode: write.mode,
        on_match: write.on_match,
        cascade: write.cascade,
        key,
        len: write.rows.len(),
        columns,
        if_updated_at,
    })
}

/// The table of that name, if rows can be written to it.
pub(in crate::data) fn writable_table(catalog: &Catalog, name: &str) -> Result<KeyedTable, Reason> {
    match catalog.table(name) {
        Some(table) => KeyedTable::of(table).ok_or_else(|| {
            Reason::new(
                ErrorCode::WrongTableKind,
                format!("\"{name}\" is a raw table; write its points through \"series\""),
            )
        }),
        None if PlatformTable::from_name(name).is_some() => Err(Reason::new(
            ErrorCode::WrongTableKind,
            format!("\"{name}\" is the platform's own table, which is read only"),
        )),
        None => Err(no_table(name)),
    }
}

struct TableChecker<'a, 'c> {
    index: usize,
    table: &'a KeyedTable,
    write: &'a TableWrite,
    references: &'a mut ReferenceReader<'c>,
    problems: &'a mut ProblemList,
}

/// A column of the input that the table has.
struct GivenColumn<'a> {
    column: &'a ColumnRef,
    /// Position among the input's columns.
    position: usize,
    input: InputColumn<'a>,
}

impl<'a> TableChecker<'a, '_> {
    /// Returns the columns by which rows are matched, and all columns.
    fn check(mut self) -> (Vec<ColumnRef>, Vec<CheckedColumn>) {
        let key = self.check_key();
        let mut columns = Vec::new();
        for given in self.given_columns() {
            if self.write.mode == Mode::Delete && !key.contains(given.column) {
                self.report_each_given(given.position, given.input, || {
                    Reason::new(
                        ErrorCode::ColumnNotWritable,
                        "a delete takes only the key columns",
                    )
                });
            } else {
                columns.push(self.check_column(&given));
            }
        }
        match self.write.mode {
            Mode::Insert => {
                self.require_columns(&columns);
                self.add_defaults(&mut columns);
            }
            // Required columns are checked later, when it is known which rows are new.
            Mode::Upsert => self.add_defaults(&mut columns),
            Mode::Update | Mode::Delete => {}
        }
        if self.write.mode != Mode::Insert {
            self.require_keys(&key, &columns);
        }
        (key, columns)
    }

    /// For each row, when the row that it matches must have been changed last, if it says so; empty
    /// if no row does.
    fn expected_times(&mut self) -> Vec<Option<OffsetDateTime>> {
        let Some(input) = self.write.rows.column(IF_UPDATED_AT_KEY) else {
            return Vec::new();
        };
        let mut times = Vec::with_capacity(self.write.rows.len());
        for (row, cell) in input.cells().enumerate() {
            let time = cell.to_scalar(DataType::Datetime);
            times.push(time.unwrap_or_else(|message| {
                self.at_own_key(row, IF_UPDATED_AT_KEY, || {
                    Reason::new(ErrorCode::WrongType, message)
                });
                None
            }));
            if self.write.mode == Mode::Insert && !matches!(cell, Cell::Absent | Cell::Null) {
                self.at_own_key(row, IF_UPDATED_AT_KEY, || {
                    Reason::new(
                        ErrorCode::ColumnNotWritable,
                        "an insert matches no row that could have been changed",
                    )
                });
            }
        }
        let times = times.into_iter().map(|time| match time {
            Some(Scalar::Datetime(time)) => Some(time),
            _ => None,
        });
        times.collect()
    }

    /// Reports a key of a row's map that names no column.
    fn at_own_key(&mut self, row: usize, key: &str, reason: impl FnOnce() -> Reason) {
        let address = self.address(row);
        self.problems.at_cell(address, None, key, reason);
    }

    const fn address(&self, row: usize) -> RowAddress {
        RowAddress {
            table: self.index,
            row,
        }
    }

    fn at_cell(&mut self, row: usize, input: usize, column: &str, reason: impl FnOnce() -> Reason) {
        let address = self.address(row);
        self.problems.at_cell(address, Some(input), column, reason);
    }

    /// The input's columns that the table has, the primary key first, so that a row may reference
    /// an id given before it. Reports unknown columns.
    fn given_columns(&mut self) -> Vec<GivenColumn<'a>> {
        let (table, write) = (self.table, self.write);
        let inputs = write
            .rows
            .columns()
            .filter(|input| ![LABEL_KEY, IF_UPDATED_AT_KEY].contains(&input.name));
        let mut given = Vec::new();
        for (position, input) in inputs.enumerate() {
            match table.column(input.name) {
                Some(column) => given.push(GivenColumn {
                    column,
                    position,
                    input,
                }),
                None => {
                    self.report_each_given(position, input, || unknown_column(table, input.name));
                }
            }
        }
        // The primary key first, because references within the table look for the keys that it gives.
        given.sort_by_key(|given| (!given.column.is_primary_key, given.position));
        given
    }

    fn report_each_given(
        &mut self,
        position: usize,
        input: InputColumn<'_>,
        reason: impl Fn() -> Reason,
    ) {
        let displayed = quoted(input.name);
        // Once for each row that names it, as for any other problem of a cell.
        for row in input.given_rows() {
            self.at_cell(row, position, &displayed, &reason);
        }
    }

    fn check_column(&mut self, given: &GivenColumn<'_>) -> CheckedColumn {
        let GivenColumn {
            column,
            position,
            input,
        } = *given;
        let provided = input.provided();
        let content = if let Some(file) = input.file() {
            let values = self.read_file(given, file);
            if column.is_primary_key {
                self.note_keys(given, &values);
            }
            Content::Values(values)
        } else if let Some(target) = &column.references {
            Content::References(self.read_references(given, target))
        } else {
            let values = self.read_values(given);
            if column.is_primary_key {
                self.note_keys(given, &values);
            }
            Content::Values(values.into())
        };
        CheckedColumn {
            column: column.clone(),
            input: Some(position),
            content,
            provided,
        }
    }

    /// Reports the cells of a file that are no values. The values themselves are those of the request: a copy would
    /// double the memory of an import.
    fn read_file(&mut self, given: &GivenColumn<'_>, file: &FileColumn) -> Arc<Values> {
        let GivenColumn {
            column, position, ..
        } = *given;
        if column.references.is_some() || column.data_type != file.data_type() {
            self.problems.at_table(self.index, &column.name, || {
                let message =
                    "the column was changed while the file was read; import the file again";
                Reason::new(ErrorCode::TablesChanged, message)
            });
            let len = self.write.rows.len();
            return Values::nulls_of(column.data_type, len).into();
        }
        for (row, refused) in file.refused() {
            self.at_cell(row, position, &column.name, || {
                Reason::new(ErrorCode::WrongType, refused.message(column.data_type))
            });
        }
        if file.blanks_are_null() && !self.may_be_null(column) {
            for row in file.blank_rows() {
                self.at_cell(row, position, &column.name, must_not_be_null);
            }
        }
        match column.default_value().filter(|_| !file.blanks_are_null()) {
            // For a row that is created, as in `read_values`.
            Some(default) => file.values_or(&default).into(),
            None => Arc::clone(file.values()),
        }
    }

    /// Returns whether a null says something: in a key of a new row, that it is to be generated, as frames have a column
    /// of empty ids.
    fn may_be_null(&self, column: &ColumnRef) -> bool {
        let is_generated = column.is_primary_key && column.data_type.is_generated_key();
        column.is_nullable || is_generated && self.write.mode == Mode::Insert
    }

    fn read_values(&mut self, given: &GivenColumn<'_>) -> Values {
        let GivenColumn {
            column,
            position,
            input,
        } = *given;
        // Parsed once, not for each row that leaves the column out.
        let default = column.default_value();
        let mut values = Values::with_capacity(column.data_type, self.write.rows.len());
        for (row, cell) in input.cells().enumerate() {
            if *cell == Cell::Absent {
                // For a row that is created. A stored row that matches ignores it, as `provided` is
                // false there.
                values.push_or_null(default.clone());
                continue;
            }
            // One value is pushed for each cell, null for one with a problem, because the index of
            // a value is that of its row.
            match cell.to_scalar(column.data_type) {
                Ok(Some(scalar)) => values.push(scalar),
                Ok(None) => {
                    if !self.may_be_null(column) {
                        self.at_cell(row, position, &column.name, must_not_be_null);
                    }
                    values.push_null();
                }
                Err(message) => {
                    self.at_cell(row, position, &column.name, || {
                        Reason::new(ErrorCode::WrongType, message)
                    });
                    values.push_null();
                }
            }
        }
        values
    }

    fn read_references(&mut self, given: &GivenColumn<'_>, target: &str) -> Vec<Reference> {
        let GivenColumn {
            column,
            position,
            input,
        } = *given;
        let mut references = Vec::with_capacity(self.write.rows.len());
        for (row, cell) in input.cells().enumerate() {
            // Not an absent cell: it leaves a value as it is, or takes the default. `require_columns` refuses one
            // that an insert needs.
            if *cell == Cell::Null && !column.is_nullable {
                self.at_cell(row, position, &column.name, must_not_be_null);
            }
            let address = self.address(row);
            let reference = match (cell, self.write.lookups.get(&column.name)) {
                (Cell::File(cell), Some(lookup)) => self
                    .references
                    .read_file_cell(cell, lookup, target, address),
                _ => self.references.read(cell, target, Some(address)),
            };
            references.push(reference.unwrap_or_else(|message| {
                self.at_cell(row, position, &column.name, || message);
                Reference::None
            }));
        }
        references
    }

    /// Reports each required column that a row of an insert leaves out.
    fn require_columns(&mut self, columns: &[CheckedColumn]) {
        let required = self.table.columns.iter();
        for column in required.filter(|column| column.is_required_to_create()) {
            let given = columns.iter().find(|given| given.column == *column);
            for row in 0..self.write.rows.len() {
                if given.is_none_or(|given| !given.is_provided(row)) {
                    let address = self.address(row);
                    self.problems
                        .at_row(address, || missing_column(&column.name));
                }
            }
        }
    }

    /// Adds the defaults of columns that no row gives.
    fn add_defaults(&self, columns: &mut Vec<CheckedColumn>) {
        let len = self.write.rows.len();
        for column in &self.table.columns {
            if columns.iter().any(|given| given.column == *column) {
                continue;
            }
            if let Some(default) = column.default_value() {
                columns.push(CheckedColumn {
                    column: column.clone(),
                    input: None,
                    content: Content::Values(
                        Values::repeat(column.data_type, &default, len).into(),
                    ),
                    // Defaults fill new rows, but must not overwrite matched ones.
                    provided: Some(vec![false; len]),
                });
            }
        }
    }
}

/// Message for a column that the table does not have, or that cannot be written.
pub(in crate::data) fn unknown_column(table: &Table, name: &str) -> Reason {
    let displayed = quoted(name);
    // Rows that were read have these columns, so writing one back is a likely mistake.
    if SystemColumn::from_name(name).is_some() {
        return Reason::new(
            ErrorCode::ColumnNotWritable,
            format!("column \"{displayed}\" is maintained by the server and cannot be written"),
        );
    }
    // Someone who knows the table from SQL writes the reference `sample` as `sample_id`.
    if let Some(column) = table
        .columns
        .iter()
        .find(|column| column.references.is_some() && column.sql_name() == name)
    {
        return Reason::new(
            ErrorCode::UnknownColumn,
            format!(
                "\"{}\" has no column \"{displayed}\"; the reference is called \"{}\"",
                table.name, column.name
            ),
        );
    }
    no_column(&table.name, name)
}
