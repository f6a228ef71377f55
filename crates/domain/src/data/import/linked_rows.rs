//! Rows of linked tables: lines with the same key are one row.

use std::collections::{HashMap, hash_map::Entry};

use super::{ImportColumns, LinkedColumns};
use crate::{
    catalog::ColumnRef,
    data::write::{
        FileCell, FileLines, LABEL_KEY, LinkedName, Mode, Problem, Reason, Rows, TableWrite,
        cell::Cell, quoted,
    },
    refusal::ErrorCode,
};

/// Rows of all linked tables of an import.
#[derive(Debug, Default)]
pub(super) struct LinkedRows {
    tables: Vec<LinkedTableRows>,
    pub(super) problems: Vec<Problem>,
    /// Number of their cells.
    pub(super) cells: usize,
    /// Size of their texts in bytes.
    pub(super) text: usize,
}

#[derive(Debug)]
struct LinkedTableRows {
    columns: LinkedColumns,
    rows: Vec<LinkedRow>,
    by_key: HashMap<Vec<String>, usize>,
}

#[derive(Debug)]
struct LinkedRow {
    /// First line that gives it.
    line: u64,
    /// A cell per field of the header that the table has a column for.
    cells: Vec<Option<FileCell>>,
    /// Rows of the parents, in their order.
    parents: Vec<Option<usize>>,
}

impl LinkedRows {
    pub(super) fn new(tables: Vec<LinkedColumns>) -> Self {
        let tables = tables.into_iter().map(|columns| LinkedTableRows {
            columns,
            rows: Vec::new(),
            by_key: HashMap::new(),
        });
        Self {
            tables: tables.collect(),
            ..Self::default()
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// Adds the rows that the cells of a line give. Returns the columns of the import's own table that refer to them,
    /// with the labels of the rows; `None` where all cells of the linked table are blank.
    pub(super) fn add(
        &mut self,
        line: u64,
        cells: &[Option<FileCell>],
    ) -> Vec<(ColumnRef, Option<String>)> {
        // Linked tables come after those that they refer to.
        let mut given: Vec<Option<usize>> = Vec::with_capacity(self.tables.len());
        for table in &mut self.tables {
            let parents = table.columns.parents.iter();
            let row = LinkedRow {
                line,
                cells: table.cells(cells),
                parents: parents
                    .map(|(parent, _)| given.get(*parent).copied().flatten())
                    .collect(),
            };
            let (count, text) = row.size();
            let known = table.rows.len();
            given.push(table.add(row, &mut self.problems));
            if table.rows.len() > known {
                self.cells += count;
                self.text += text;
            }
        }
        let own = self.tables.iter().zip(given).enumerate();
        own.filter(|(_, (table, _))| table.columns.referrer.is_none())
            .map(|(index, (table, row))| {
                let label = row.map(|row| label(index, row));
                (table.columns.reference.clone(), label)
            })
            .collect()
    }

    /// The writes of the rows with the lines of their rows, and the columns of the fields.
    pub(super) fn into_writes(self) -> Vec<(TableWrite, FileLines, ImportColumns)> {
        let tables = self.tables.into_iter().enumerate();
        tables
            .map(|(index, table)| table.into_write(index))
            .collect()
    }
}

impl LinkedRow {
    /// Returns the number of its cells, and the size of their texts in bytes.
    fn size(&self) -> (usize, usize) {
        let texts = self.cells.iter().flatten().map(|cell| match cell {
            FileCell::Text(text) => text.len(),
            _ => 0,
        });
        (self.cells.len() + self.parents.len() + 1, texts.sum())
    }
}

impl LinkedTableRows {
    /// Copies of the cells that the table has a column for: other tables may take them as well.
    fn cells(&self, cells: &[Option<FileCell>]) -> Vec<Option<FileCell>> {
        let fields = self.columns.columns.columns.iter().zip(cells);
        fields
            .filter(|(column, _)| column.is_some())
            .map(|(_, cell)| cell.clone())
            .collect()
    }

    /// The columns of the cells.
    fn own_columns(&self) -> impl Iterator<Item = &ColumnRef> {
        self.columns.columns.columns.iter().flatten()
    }

    /// Returns the index of the row, which lines before may have given; `None` for a blank one, and one with a problem.
    fn add(&mut self, row: LinkedRow, problems: &mut Vec<Problem>) -> Option<usize> {
        let is_blank = row.cells.iter().all(Option::is_none);
        // A line that only refers to other rows still gives one, as references may identify it.
        if is_blank && row.parents.iter().all(Option::is_none) {
            return None;
        }
        let key = match self.key_of(&row) {
            Ok(key) => key,
            Err(column) => {
                let message = "must not be blank: it identifies the row";
                problems.push(self.problem(row.line, &column, ErrorCode::MissingValue, message));
                return None;
            }
        };
        match self.by_key.entry(key) {
            Entry::Vacant(entry) => {
                let index = self.rows.len();
                entry.insert(index);
                self.rows.push(row);
                Some(index)
            }
            Entry::Occupied(entry) => {
                let index = *entry.get();
                self.merge(index, row, problems);
                Some(index)
            }
        }
    }

    /// The values that identify a row.
    ///
    /// # Errors
    /// The column that has none.
    fn key_of(&self, row: &LinkedRow) -> Result<Vec<String>, String> {
        let value_of = |name: &String| {
            let cells = self.own_columns().zip(&row.cells);
            let own = cells.filter(|(column, _)| column.name == *name);
            let own = own.filter_map(|(_, cell)| Some(cell.as_ref()?.to_string()));
            let parents = self.columns.parents.iter().zip(&row.parents);
            let parents = parents.filter(|((_, column), _)| column.name == *name);
            // Numbers of rows and values never meet: a column is given by either.
            let parents = parents.filter_map(|(_, parent)| Some((*parent)?.to_string()));
            own.chain(parents).next().ok_or_else(|| name.clone())
        };
        self.columns.key.iter().map(value_of).collect()
    }

    /// Adds the cells of a later line to a row. Two lines that contradict each other are a problem.
    fn merge(&mut self, index: usize, later: LinkedRow, problems: &mut Vec<Problem>) {
        let Some(first) = self.rows.get(index) else {
            return;
        };
        let mut found = Vec::new();
        let cells = first.cells.iter().zip(&later.cells);
        for (column, (one, other)) in self.own_columns().zip(cells) {
            let (Some(one), Some(other)) = (one, other) else {
                continue;
            };
            let (one, other) = (one.to_string(), other.to_string());
            if one != other {
                found.push((column.name.clone(), quoted(&one), quoted(&other)));
            }
        }
        let parents = first.parents.iter().zip(&later.parents);
        for ((_, column), (one, other)) in self.columns.parents.iter().zip(parents) {
            if one.is_some() && other.is_some() && one != other {
                found.push((
                    column.name.clone(),
                    "a row".to_owned(),
                    "another".to_owned(),
                ));
            }
        }
        let line = first.line;
        for (column, one, other) in found {
            let message = format!(
                "is \"{other}\" here, but \"{one}\" on line {line}, which gives the same row of \"{}\"",
                self.columns.table.name
            );
            problems.push(self.problem(later.line, &column, ErrorCode::DuplicateKey, &message));
        }
        if let Some(first) = self.rows.get_mut(index) {
            for (cell, other) in first.cells.iter_mut().zip(later.cells) {
                // A blank cell contradicts nothing: the value of either line counts.
                *cell = cell.take().or(other);
            }
            for (parent, other) in first.parents.iter_mut().zip(later.parents) {
                *parent = parent.or(other);
            }
        }
    }

    fn problem(&self, line: u64, column: &str, code: ErrorCode, message: &str) -> Problem {
        let path = format!("rows[{line}].{}.{column}", self.columns.table.name);
        Problem::at(path, Reason::new(code, message))
    }

    fn into_write(mut self, index: usize) -> (TableWrite, FileLines, ImportColumns) {
        let mut rows = Rows::default();
        let mut lines = Vec::with_capacity(self.rows.len());
        for (number, row) in std::mem::take(&mut self.rows).into_iter().enumerate() {
            rows.begin_row();
            lines.push(row.line);
            rows.set(0, LABEL_KEY, Cell::Text(label(index, number)));
            let mut hint = 1;
            for (column, cell) in self.own_columns().zip(row.cells) {
                // A blank cell changes nothing.
                if let Some(cell) = cell {
                    rows.set(hint, &column.name, Cell::File(cell));
                }
                hint += 1;
            }
            for ((parent, column), of) in self.columns.parents.iter().zip(row.parents) {
                if let Some(of) = of {
                    let label = Cell::Text(format!("@{}", label(*parent, of)));
                    rows.set(hint, &column.name, label);
                }
                hint += 1;
            }
        }
        let LinkedColumns {
            table,
            columns,
            key,
            on_match,
            ..
        } = self.columns;
        let write = TableWrite {
            table: table.name.clone(),
            rows,
            mode: Mode::Upsert,
            key: Some(key),
            on_match,
            lookups: columns.lookups.clone(),
            ..TableWrite::default()
        };
        let linked = LinkedName {
            index,
            table: table.name.clone(),
        };
        let lines = FileLines {
            lines: lines.into(),
            linked: Some(linked),
        };
        (write, lines, columns)
    }
}

/// The label of a row.
fn label(table: usize, row: usize) -> String {
    format!("{table}.{row}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_counts_its_blank_cells_its_references_and_its_label() {
        let text = |text: &str| Some(FileCell::Text(text.to_owned()));
        for (cells, parents, expected) in [
            (vec![], vec![], (1, 0)),
            (vec![text("abc"), None], vec![Some(7)], (4, 3)),
            (
                vec![text("a"), text("bc"), Some(FileCell::Integer(5))],
                vec![None, None],
                (6, 3),
            ),
        ] {
            let row = LinkedRow {
                line: 2,
                cells,
                parents,
            };
            assert_eq!(row.size(), expected, "{row:?}");
        }
    }
}
