//! A plain model of an organization's tables: maps of rows, lists of points.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::Arc,
};

use labdata_domain::{
    catalog::{Catalog, CatalogVersion, Table},
    ids::ExecutionId,
    scalar::{KeyValue, Scalar},
};
use time::OffsetDateTime;

/// Values by the table's columns; `None` is null.
pub(crate) type Cells = Vec<Option<Scalar>>;

/// A row of a curated or core table.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) cells: Cells,
    pub(crate) created_at: OffsetDateTime,
    pub(crate) updated_at: OffsetDateTime,
    pub(crate) created_by: ExecutionId,
    /// Executions that changed it since.
    pub(crate) changed_by: BTreeSet<ExecutionId>,
}

/// Points of a raw table that were written together.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) id: i64,
    pub(crate) execution: ExecutionId,
    /// Each with its place, from 1.
    pub(crate) points: Vec<(i64, Cells)>,
}

/// What an execution did to a table, for its revert.
#[derive(Clone, Debug)]
pub(crate) struct LedgerEntry {
    pub(crate) execution: ExecutionId,
    pub(crate) table: String,
    pub(crate) effect: Effect,
}

/// What was done.
#[derive(Clone, Debug)]
pub(crate) enum Effect {
    /// These rows were created.
    Created(Vec<KeyValue>),
    /// So many rows were updated.
    Updated(usize),
    /// So many rows were deleted.
    Deleted(usize),
}

/// All tables of one organization and all that is in them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tables {
    pub(crate) version: i64,
    pub(crate) defined: Vec<Table>,
    pub(crate) rows: BTreeMap<String, BTreeMap<KeyValue, Row>>,
    pub(crate) series: BTreeMap<String, Vec<Series>>,
    pub(crate) ledger: Vec<LedgerEntry>,
    last_id: i64,
}

impl Tables {
    /// The tables as they stand.
    pub(crate) fn catalog(&self) -> Catalog {
        Catalog::new(CatalogVersion(self.version), self.defined.clone())
    }

    /// An id that no table, column or series of the organization has.
    pub(crate) fn next_id(&mut self) -> i64 {
        self.last_id += 1;
        self.last_id
    }

    /// The rows of a table.
    pub(crate) fn rows_of(
        &self,
        table: &str,
    ) -> impl DoubleEndedIterator<Item = (&KeyValue, &Row)> {
        self.rows.get(table).into_iter().flatten()
    }

    /// The row of that key.
    pub(crate) fn row(&self, table: &str, key: &KeyValue) -> Option<&Row> {
        self.rows.get(table)?.get(key)
    }

    /// The series of a raw table.
    pub(crate) fn series_of(&self, table: &str) -> &[Series] {
        self.series
            .get(table)
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    /// Every row outside `rows` that points at a row in it: its table and key.
    pub(crate) fn referrers(
        &self,
        rows: &BTreeSet<(String, KeyValue)>,
    ) -> BTreeSet<(String, KeyValue)> {
        let mut found = BTreeSet::new();
        for table in self.catalog().tables() {
            for (key, row) in self.rows_of(&table.name) {
                let here = (table.name.clone(), key.clone());
                if !rows.contains(&here) && points_at(table, &row.cells, rows) {
                    found.insert(here);
                }
            }
        }
        found
    }

    /// Deletes rows, and every point that points at one of them. Returns how many points of which
    /// raw table went, and the executions that had written them.
    pub(crate) fn delete(
        &mut self,
        rows: &BTreeSet<(String, KeyValue)>,
    ) -> BTreeMap<String, Vec<ExecutionId>> {
        for (table, key) in rows {
            if let Some(rows) = self.rows.get_mut(table) {
                rows.remove(key);
            }
        }
        let mut points_gone: BTreeMap<String, Vec<ExecutionId>> = BTreeMap::new();
        for table in self
            .catalog()
            .tables()
            .iter()
            .filter(|table| table.is_raw())
        {
            for series in self.series.get_mut(&table.name).into_iter().flatten() {
                let before = series.points.len();
                series
                    .points
                    .retain(|(_, cells)| !points_at(table, cells, rows));
                let gone = std::iter::repeat_n(series.execution, before - series.points.len());
                points_gone
                    .entry(table.name.clone())
                    .or_default()
                    .extend(gone);
            }
        }
        points_gone.retain(|_, gone| !gone.is_empty());
        points_gone
    }

    /// Values that are null where they must not be, or occur twice where they must be unique.
    pub(crate) fn broken_values(&self) -> Vec<String> {
        let mut broken = Vec::new();
        for table in self.catalog().tables() {
            let alone = table
                .columns
                .iter()
                .filter(|column| column.is_unique)
                .map(|column| vec![column.name.clone()]);
            for group in alone.chain(table.unique_together.iter().cloned()) {
                broken.extend(self.repeated(table, &group));
            }
            let points = self
                .series_of(&table.name)
                .iter()
                .flat_map(|series| &series.points)
                .map(|(_, cells)| cells);
            for cells in self
                .rows_of(&table.name)
                .map(|(_, row)| &row.cells)
                .chain(points)
            {
                for (column, cell) in table.columns.iter().zip(cells) {
                    if cell.is_none() && !column.is_nullable {
                        broken.push(format!(
                            "\"{}\": column \"{}\" must not be null",
                            table.name, column.name
                        ));
                    }
                }
            }
        }
        broken
    }

    fn repeated(&self, table: &Table, group: &[String]) -> Option<String> {
        let columns: Vec<usize> = group
            .iter()
            .filter_map(|name| table.column(name))
            .map(|(index, _)| index)
            .collect();
        let mut seen = HashSet::new();
        self.rows_of(&table.name).find_map(|(_, row)| {
            // Null is equal to nothing, not even to null.
            let values: Option<Vec<String>> =
                columns.iter().map(|column| cell(&row.cells, *column).map(|value| value.to_json().to_string())).collect();
            let values = values?.join(", ");
            let text = format!(
                "\"{}\": a value that must be unique occurs twice (constraint \"{}_{}_key\"): {values}",
                table.name,
                table.name,
                group.join("_")
            );
            (!seen.insert(values)).then_some(text)
        })
    }

    /// References that point at no row.
    pub(crate) fn dangling(&self) -> Vec<String> {
        let mut dangling = Vec::new();
        for table in self.catalog().tables() {
            let points = self
                .series_of(&table.name)
                .iter()
                .flat_map(|series| &series.points)
                .map(|(_, cells)| cells);
            for cells in self
                .rows_of(&table.name)
                .map(|(_, row)| &row.cells)
                .chain(points)
            {
                for (index, column) in table.references() {
                    let target = column.references.as_deref().unwrap_or_default();
                    let key = cell(cells, index).and_then(key_of);
                    if let Some(key) = key.filter(|key| self.row(target, key).is_none()) {
                        dangling.push(format!(
                            "\"{}\": a reference would point at no row (constraint \"{}_{}_fkey\"): \"{target}\" has no row \"{key}\"",
                            table.name,
                            table.name,
                            column.sql_name()
                        ));
                    }
                }
            }
        }
        dangling
    }
}

/// The value of a column.
pub(crate) fn cell(cells: &Cells, column: usize) -> Option<&Scalar> {
    cells.get(column)?.as_ref()
}

/// A value as a key.
pub(crate) fn key_of(value: &Scalar) -> Option<KeyValue> {
    match value {
        Scalar::Text(text) => Some(KeyValue::Text(text.clone())),
        Scalar::Integer(number) => Some(KeyValue::Integer(*number)),
        Scalar::Uuid(id) => Some(KeyValue::Uuid(*id)),
        _ => None,
    }
}

/// Whether one of the references points at one of the rows.
fn points_at(table: &Arc<Table>, cells: &Cells, rows: &BTreeSet<(String, KeyValue)>) -> bool {
    table.references().any(|(index, column)| {
        let target = column.references.clone().unwrap_or_default();
        let key = cell(cells, index).and_then(key_of);
        key.is_some_and(|key| rows.contains(&(target, key)))
    })
}
