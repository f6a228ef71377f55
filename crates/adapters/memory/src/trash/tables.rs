//! Dropped tables.

use std::collections::BTreeMap;

use labdata_domain::{
    catalog::{CatalogRefusal, Table},
    refusal::Resource,
    scalar::KeyValue,
    trash::{ReferenceTargets, check_table, is_reference_to, reference_targets},
};
use labdata_ports::{PortError, catalog::DefineError, trash::RestoreError};
use time::OffsetDateTime;

use crate::data::{
    history::Change,
    tables::{Cells, Row, Series, Tables},
};

/// A table with all that it held.
#[derive(Clone, Debug)]
pub(crate) struct DroppedTable {
    pub(crate) table: Table,
    targets: ReferenceTargets,
    rows: BTreeMap<KeyValue, Row>,
    series: Vec<Series>,
    changes: Vec<Change>,
    deleted_versions: BTreeMap<(String, String), u64>,
    known_since: Option<OffsetDateTime>,
}

/// Bytes that values take, about.
pub(super) fn size_of(cells: &Cells) -> u64 {
    let lengths = cells
        .values()
        .map(|value| value.to_json().to_string().len());
    u64::try_from(lengths.sum::<usize>()).unwrap_or(u64::MAX)
}

impl DroppedTable {
    /// Forgets the recorded changes of series that a row of that table owned; returns whether there were any.
    pub(super) fn forget_series(&mut self, parent: &Table, key: &KeyValue) -> bool {
        let references = self.table.references();
        let references =
            references.filter(|(column, _)| is_reference_to(column, &self.targets, parent));
        let references: Vec<_> = references.map(|(reference, _)| reference).collect();
        let before = self.changes.len();
        self.changes.retain(|change| {
            let mut references = references.iter();
            !references.any(|reference| change.is_series_of(reference, key))
        });
        self.changes.len() < before
    }

    pub(super) fn size(&self) -> u64 {
        let points = self.series.iter().flat_map(|series| &series.points);
        let points = points.map(|(_, cells)| cells);
        let rows = self.rows.values().map(|row| &row.cells);
        rows.chain(points).map(size_of).sum()
    }
}

impl Tables {
    /// Checks that a table may be dropped.
    ///
    /// # Errors
    /// As [`labdata_ports::catalog::CatalogStore::drop_table`].
    pub(crate) fn check_drop(&self, name: &str, force: bool) -> Result<Table, DefineError> {
        let catalog = self.catalog();
        let table = catalog
            .table(name)
            .ok_or(PortError::NotFound(Resource::Table))?;
        let has_points = self
            .series_of(name)
            .iter()
            .any(|series| !series.points.is_empty());
        let is_empty = !has_points && self.rows_of(name).next().is_none();
        catalog.check_drop(table, is_empty, force)?;
        Ok((**table).clone())
    }

    /// Drops a table; returns it with all that it held.
    pub(crate) fn take_table(
        &mut self,
        name: &str,
        force: bool,
    ) -> Result<DroppedTable, DefineError> {
        let table = self.check_drop(name, force)?;
        let targets = reference_targets(&self.catalog(), table.columns.iter().map(|it| &**it));
        self.defined.retain(|table| table.name != name);
        let changes = std::mem::take(&mut self.changes);
        let (changes, others) = changes.into_iter().partition(|change| change.table == name);
        self.changes = others;
        let deleted_versions = std::mem::take(&mut self.deleted_versions);
        let (deleted_versions, others) = deleted_versions
            .into_iter()
            .partition(|((table, _), _)| table == name);
        self.deleted_versions = others;
        self.version += 1;
        Ok(DroppedTable {
            table,
            targets,
            rows: self.rows.remove(name).unwrap_or_default(),
            series: self.series.remove(name).unwrap_or_default(),
            changes,
            deleted_versions,
            known_since: self.known_since.remove(name),
        })
    }

    /// The tables with a dropped one.
    pub(super) fn with_restored(&self, dropped: DroppedTable) -> Result<Self, RestoreError> {
        let table = check_table(&self.catalog(), &dropped.table, &dropped.targets)?;
        let mut tables = self.clone();
        let DroppedTable {
            table: _,
            targets: _,
            rows,
            series,
            changes,
            deleted_versions,
            known_since,
        } = dropped;
        tables.rows.insert(table.name.clone(), rows);
        tables.series.insert(table.name.clone(), series);
        tables.changes.extend(changes);
        tables.deleted_versions.extend(deleted_versions);
        if let Some(since) = known_since {
            tables.known_since.insert(table.name.clone(), since);
        }
        // In the order in which they were made.
        tables.changes.sort_by_key(|change| change.number);
        tables.defined.push(table);
        tables.defined.sort_by_key(|table| table.id);
        tables.version += 1;
        tables.checked()
    }

    /// The tables, unless a row breaks a constraint.
    pub(super) fn checked(self) -> Result<Self, RestoreError> {
        match self.violation().or_else(|| self.dangling()) {
            None => Ok(self),
            Some(violation) => Err(DefineError::from(CatalogRefusal::Violation(violation)).into()),
        }
    }
}
