//! Keys of a table write: the columns by which rows are matched, and the ids that rows bring.

use super::{GivenColumn, TableChecker, unknown_column};
use crate::{
    catalog::ColumnRef,
    data::write::{Mode, check::checked::CheckedColumn, problem::Reason},
    refusal::ErrorCode,
    scalar::{DataType, KeyValue, Values},
};

impl<'a> TableChecker<'a, '_> {
    /// The columns by which rows are matched; none for an insert.
    pub(super) fn check_key(&mut self) -> Vec<ColumnRef> {
        if self.write.mode == Mode::Insert {
            return Vec::new();
        }
        let Some(names) = &self.write.key else {
            return vec![self.table.key().clone()];
        };
        // The cells are checked all the same: the response lists every problem of the request.
        if names.is_empty() {
            self.problems.at_table(self.index, "key", || {
                Reason::new(ErrorCode::InvalidKey, "a key needs at least one column")
            });
        }
        let mut key = Vec::with_capacity(names.len());
        for (position, name) in names.iter().enumerate() {
            match self.key_column(name, &key) {
                Ok(column) => key.push(column.clone()),
                Err(message) => {
                    let part = format!("key[{position}]");
                    self.problems.at_table(self.index, &part, || message);
                }
            }
        }
        key
    }

    fn key_column(&self, name: &str, earlier: &[ColumnRef]) -> Result<&'a ColumnRef, Reason> {
        match self.table.column(name) {
            None => Err(unknown_column(self.table, name)),
            Some(column) if column.data_type == DataType::Json => Err(Reason::new(
                ErrorCode::InvalidKey,
                format!("column \"{name}\" is json, by which rows cannot be matched"),
            )),
            Some(column) if earlier.contains(column) => Err(Reason::new(
                ErrorCode::DuplicateColumn,
                format!("column \"{name}\" is given twice"),
            )),
            Some(column) => Ok(column),
        }
    }

    /// Notes the ids that exist from a row on. Reports those that no reference could name, and those
    /// that a table write repeats: between two table writes a third one may delete the row.
    pub(super) fn note_keys(&mut self, given: &GivenColumn<'_>, values: &Values) {
        let (name, position) = (&given.column.name, given.position);
        let mode = self.write.mode;
        // Decides whether rows behind may reference the key without a question to the database. A row that is matched by
        // other columns and has another key than the one given is refused by the write.
        let exists_from_here = mode != Mode::Delete;
        for row in 0..values.len() {
            let Some(key) = values.key(row) else {
                continue;
            };
            // The row could never be referenced: the text would be read as a label.
            if matches!(&key, KeyValue::Text(text) if text.starts_with('@'))
                && matches!(mode, Mode::Insert | Mode::Upsert)
            {
                self.at_cell(row, position, name, || {
                    Reason::new(
                        ErrorCode::InvalidValue,
                        "an id must not begin with \"@\", which marks labels",
                    )
                });
            }
            if !exists_from_here {
                continue;
            }
            let address = self.address(row);
            let first = self.references.give_key(&self.table.name, key, address);
            if mode == Mode::Insert
                && let Some(first) = first.filter(|first| first.table == self.index)
            {
                let displayed = values.key(row).map(|key| key.to_string());
                let first = self.problems.names().row(first);
                self.at_cell(row, position, name, || {
                    Reason::new(
                        ErrorCode::DuplicateKey,
                        format!(
                            "the key \"{}\" is given twice (first in {first})",
                            displayed.unwrap_or_default(),
                        ),
                    )
                });
            }
        }
    }

    /// Reports each key column that a row leaves out or gives as null.
    pub(super) fn require_keys(&mut self, key: &[ColumnRef], columns: &[CheckedColumn]) {
        for column in key {
            let name = &column.name;
            let given = columns.iter().find(|given| given.column == *column);
            for row in 0..self.write.rows.len() {
                let address = self.address(row);
                match given.filter(|given| given.is_provided(row)) {
                    None => self.problems.at_row(address, || {
                        Reason::new(
                            ErrorCode::MissingValue,
                            format!("the key column \"{name}\" is missing"),
                        )
                    }),
                    // A null in a column that takes none was reported when its cell was read.
                    Some(given) if column.is_nullable && given.is_null(row) => {
                        self.problems.at_cell(address, given.input, name, || {
                            Reason::new(
                                ErrorCode::MissingValue,
                                "a key column must not be null: null matches no row",
                            )
                        });
                    }
                    Some(_) => {}
                }
            }
        }
    }
}
