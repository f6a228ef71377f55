//! Dropped columns.

use std::collections::BTreeMap;

use labdata_domain::{
    catalog::Column,
    refusal::Resource,
    scalar::{KeyValue, Scalar},
    trash::{check_column, column_name},
};
use labdata_ports::{PortError, catalog::DefineError, trash::RestoreError};

use crate::data::{
    history::Stored,
    tables::{Cells, Tables, cell},
};

/// Address of a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// A row, by its key as text: the key may have another type when the column is restored.
    Row(String),
    /// A point, by its series and its place there.
    Point(i64, i64),
    /// A row or point of a recorded change, by the change's number.
    Former(i64, Option<i64>),
}

/// A column with its values; those of rows without one too.
#[derive(Clone, Debug)]
pub(crate) struct DroppedColumn {
    /// Id of the table.
    pub(crate) table: i64,
    table_name: String,
    pub(crate) column: Column,
    position: usize,
    values: BTreeMap<Place, Option<Scalar>>,
}

impl DroppedColumn {
    pub(super) fn name(&self) -> String {
        column_name(&self.table_name, &self.column.name)
    }

    pub(super) fn size(&self) -> u64 {
        let values = self.values.values().flatten();
        let lengths = values.map(|value| value.to_json().to_string().len());
        u64::try_from(lengths.sum::<usize>()).unwrap_or(u64::MAX)
    }

    /// Forgets the values of a row, and those of its changes of these numbers.
    pub(super) fn forget(&mut self, key: &KeyValue, changes: &[i64]) {
        let row = Place::Row(key.to_string());
        for (place, value) in &mut self.values {
            let is_former = matches!(place, Place::Former(number, _) if changes.contains(number));
            if *place == row || is_former {
                *value = None;
            }
        }
    }
}

impl Tables {
    /// Drops a column; returns it with its values.
    pub(crate) fn take_column(
        &mut self,
        table: &str,
        column: &str,
        force: bool,
    ) -> Result<DroppedColumn, DefineError> {
        let catalog = self.catalog();
        let found = catalog
            .table(table)
            .ok_or(PortError::NotFound(Resource::Table))?;
        let dropped = found
            .column_to_drop(column)?
            .ok_or(PortError::NotFound(Resource::Column))?;
        let mut cells = self.cells_of(table);
        let holds_values = cells.any(|cells| cell(cells, dropped).is_some());
        drop(cells);
        found.check_dropped_values(dropped, holds_values, force)?;
        let mut values = BTreeMap::new();
        self.at_each_place(table, |place, cells| {
            values.insert(place, cell(cells, dropped).cloned());
        });
        self.remove_column(table, dropped);
        Ok(DroppedColumn {
            table: found.id.unwrap_or_default(),
            table_name: table.to_owned(),
            column: (**dropped).clone(),
            position: dropped.position(),
            values,
        })
    }

    /// The tables with a dropped column, and the name of its table.
    pub(super) fn with_restored_column(
        &self,
        dropped: DroppedColumn,
    ) -> Result<(Self, String), RestoreError> {
        let catalog = self.catalog();
        let entry = dropped.name();
        let table = check_column(&catalog, dropped.table, &entry, &dropped.column)?;
        let mut tables = self.clone();
        let (name, sql_name) = (table.name.clone(), dropped.column.sql_name().into_owned());
        let default = dropped.column.default_value().filter(|_| !table.is_raw());
        let mut is_missing = false;
        tables.at_each_place(&name, |place, cells| {
            let is_former = matches!(place, Place::Former(..));
            let value = match dropped.values.get(&place) {
                Some(value) => value.clone(),
                // A row of the meantime.
                None => default.clone(),
            };
            is_missing |= value.is_none() && !is_former;
            cells.extend(value.map(|value| (sql_name.clone(), value)));
        });
        let column = Column {
            is_nullable: dropped.column.is_nullable || is_missing,
            ..dropped.column
        };
        for table in tables.defined.iter_mut().filter(|table| table.name == name) {
            let mut columns: Vec<Column> = table
                .columns
                .iter()
                .map(|column| (**column).clone())
                .collect();
            columns.insert(dropped.position.min(columns.len()), column.clone());
            table.columns = columns.into();
        }
        tables.version += 1;
        Ok((tables.checked()?, name))
    }

    /// Visits the cells of all rows and points of a table, now and before recorded changes.
    fn at_each_place(&mut self, table: &str, mut visit: impl FnMut(Place, &mut Cells)) {
        for (key, row) in self.rows.get_mut(table).into_iter().flatten() {
            visit(Place::Row(key.to_string()), &mut row.cells);
        }
        for series in self.series.get_mut(table).into_iter().flatten() {
            for (place, cells) in &mut series.points {
                visit(Place::Point(series.id, *place), cells);
            }
        }
        for change in self.changes.iter_mut().filter(|it| it.table == table) {
            match &mut change.before {
                Some(Stored::Row(row)) => visit(Place::Former(change.number, None), &mut row.cells),
                Some(Stored::Series(series)) => {
                    for (place, cells) in &mut series.points {
                        visit(Place::Former(change.number, Some(*place)), cells);
                    }
                }
                None => {}
            }
        }
    }
}
