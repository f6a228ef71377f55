//! Dropped columns.

use std::collections::{BTreeMap, BTreeSet};

use labdata_domain::{
    catalog::Column,
    data::history::ChangeAction,
    refusal::Resource,
    scalar::{KeyValue, Scalar},
    trash::{ReferenceTargets, check_column, column_name, reference_targets},
};
use labdata_ports::{PortError, catalog::DefineError, trash::RestoreError};
use time::OffsetDateTime;

use crate::data::{
    history::{Change, Stored},
    images::RetainedValues,
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
    targets: ReferenceTargets,
    position: usize,
    values: BTreeMap<Place, Option<Scalar>>,
    /// The last value of each row and point, of deleted ones too.
    last: BTreeMap<Place, Option<Scalar>>,
    /// When the rows were created.
    created: BTreeMap<Place, OffsetDateTime>,
    /// Number of the last recorded change.
    last_change: i64,
    images: RetainedValues,
}

/// A place, the row or point that it is about, and when a row was created.
struct Visited {
    place: Place,
    owner: Place,
    created_at: Option<OffsetDateTime>,
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

    /// Returns whether the column had another value than its last one in what a change recorded.
    pub(crate) fn differs(&self, change: &Change) -> bool {
        let differs = |former: Place, owner: &Place| {
            let former = self.values.get(&former);
            former.is_some_and(|former| self.last.get(owner) != Some(former))
        };
        match &change.before {
            Some(Stored::Row(_)) => differs(
                Place::Former(change.number, None),
                &Place::Row(change.id.clone()),
            ),
            Some(Stored::Series(series)) => series.points.iter().any(|(place, _)| {
                differs(
                    Place::Former(change.number, Some(*place)),
                    &Place::Point(series.id, *place),
                )
            }),
            None => false,
        }
    }

    /// Rows, and their recorded changes, that bear the key of a row that had the column, or of none.
    fn others(&self, tables: &Tables, table: &str) -> BTreeSet<Place> {
        let mut others = BTreeSet::new();
        // Of each row whether it is another one by now, and whether it does not exist.
        let mut rows: BTreeMap<Place, (bool, bool)> = BTreeMap::new();
        let changes = tables.changes.iter().filter(|it| it.table == table);
        for change in changes.filter(|it| it.number > self.last_change) {
            if matches!(change.before, Some(Stored::Series(_))) {
                continue;
            }
            let place = Place::Row(change.id.clone());
            let existed = self.values.contains_key(&place);
            let (is_another, is_absent) = rows.entry(place).or_insert((false, !existed));
            // A creation is not recorded: behind a deletion it is seen by the row that the next change found.
            *is_another |= *is_absent && change.before.is_some();
            if *is_another {
                others.insert(Place::Former(change.number, None));
            }
            *is_absent = change.action == ChangeAction::Deleted;
        }
        for (key, row) in tables.rows_of(table) {
            let place = Place::Row(key.to_string());
            let created = self.created.get(&place);
            let is_other = match rows.get(&place) {
                Some((is_another, is_absent)) => *is_another || *is_absent,
                // The time of creation tells where no changes are recorded.
                None => created.is_some_and(|at| *at != row.created_at),
            };
            if is_other {
                others.insert(place);
            }
        }
        others
    }

    /// Forgets the values of a row, of these series, and of changes of these numbers; returns whether there were any.
    pub(super) fn forget(
        &mut self,
        key: Option<&KeyValue>,
        series: &[i64],
        changes: &[i64],
    ) -> bool {
        let row = key.map(ToString::to_string);
        let mut found = false;
        for (place, value) in self.values.iter_mut().chain(&mut self.last) {
            let is_forgotten = match place {
                Place::Row(id) => row.as_ref() == Some(id),
                Place::Point(id, _) => series.contains(id),
                Place::Former(number, _) => changes.contains(number),
            };
            if is_forgotten {
                found |= value.take().is_some();
            }
        }
        found
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
        let (mut last, mut created) = (BTreeMap::new(), BTreeMap::new());
        self.at_each_place(table, |visited, cells| {
            let value = cell(cells, dropped).cloned();
            values.insert(visited.place.clone(), value.clone());
            let former = matches!(visited.place, Place::Former(..));
            // What stands now comes first, then changes in their order.
            if !former || !created.contains_key(&visited.owner) {
                last.insert(visited.owner.clone(), value);
            }
            if !former {
                created.insert(visited.owner, visited.created_at);
            }
        });
        let created = created.into_iter();
        let created = created
            .filter_map(|(owner, at)| Some((owner, at?)))
            .collect();
        let last_change = self.changes.iter().map(|change| change.number).max();
        let images = self.images_of(table, &dropped.name);
        self.remove_column(table, dropped);
        Ok(DroppedColumn {
            table: found.id.unwrap_or_default(),
            table_name: table.to_owned(),
            column: (**dropped).clone(),
            targets: reference_targets(&catalog, [&**dropped]),
            position: dropped.position(),
            values,
            last,
            created,
            last_change: last_change.unwrap_or_default(),
            images,
        })
    }

    /// The tables with a dropped column, and the name of its table.
    pub(super) fn with_restored_column(
        &self,
        dropped: &DroppedColumn,
    ) -> Result<(Self, String), RestoreError> {
        let catalog = self.catalog();
        let entry = dropped.name();
        let (table, column) = check_column(
            &catalog,
            dropped.table,
            &entry,
            &dropped.column,
            &dropped.targets,
        )?;
        let mut tables = self.clone();
        let (name, sql_name) = (table.name.clone(), dropped.column.sql_name().into_owned());
        let default = dropped.column.default_value().filter(|_| !table.is_raw());
        let mut is_missing = false;
        let others = dropped.others(&tables, &name);
        tables.at_each_place(&name, |visited, cells| {
            let is_former = matches!(visited.place, Place::Former(..));
            let known = match dropped.values.get(&visited.place) {
                Some(value) if is_former => Some(value),
                _ if others.contains(&visited.place) => None,
                _ => dropped.last.get(&visited.owner),
            };
            let value = match known {
                Some(value) => value.clone(),
                // A row of the meantime.
                None => default.clone(),
            };
            is_missing |= value.is_none() && !is_former;
            cells.extend(value.map(|value| (sql_name.clone(), value)));
        });
        let column = Column {
            is_nullable: column.is_nullable || is_missing,
            ..column
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
        tables.give_images_back(&name, &column.name, &dropped.images);
        tables.version += 1;
        Ok((tables.checked()?, name))
    }

    /// Visits the cells of all rows and points of a table, now and before recorded changes.
    fn at_each_place(&mut self, table: &str, mut visit: impl FnMut(Visited, &mut Cells)) {
        let mut visit = |place: Place, owner: Place, created_at, cells: &mut Cells| {
            let visited = Visited {
                place,
                owner,
                created_at,
            };
            visit(visited, cells);
        };
        for (key, row) in self.rows.get_mut(table).into_iter().flatten() {
            let place = Place::Row(key.to_string());
            visit(place.clone(), place, Some(row.created_at), &mut row.cells);
        }
        for series in self.series.get_mut(table).into_iter().flatten() {
            for (place, cells) in &mut series.points {
                let place = Place::Point(series.id, *place);
                visit(place.clone(), place, None, cells);
            }
        }
        for change in self.changes.iter_mut().filter(|it| it.table == table) {
            match &mut change.before {
                Some(Stored::Row(row)) => {
                    let place = Place::Former(change.number, None);
                    visit(place, Place::Row(change.id.clone()), None, &mut row.cells);
                }
                Some(Stored::Series(series)) => {
                    for (place, cells) in &mut series.points {
                        let owner = Place::Point(series.id, *place);
                        visit(
                            Place::Former(change.number, Some(*place)),
                            owner,
                            None,
                            cells,
                        );
                    }
                }
                None => {}
            }
        }
    }
}
