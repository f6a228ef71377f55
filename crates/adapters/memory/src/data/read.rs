//! Reading pages of rows.

use std::cmp::Ordering;

use labdata_domain::{
    catalog::{ColumnRef, Table},
    data::read::{
        Position, ReadPlan, ReadTarget, RowJson, RowPage, RowPosition, SeriesColumns, SeriesLimits,
        SeriesPlan,
    },
    ids::OrganizationId,
    scalar::{KeyValue, Scalar, Values},
};
use labdata_ports::data::ReadSeriesError;
use serde_json::{Map, Value};

use super::{
    as_of,
    filter::{all_cells, meets},
    platform::platform_rows,
};
use crate::{
    data::tables::{Cells, Row, Tables, cell},
    memory::State,
};

/// A row with its place in the order in which its target's rows are read.
struct Placed {
    row: RowPosition,
    cells: Cells,
}

pub(super) fn read(state: &State, organization: OrganizationId, plan: &ReadPlan) -> RowPage {
    let none = Tables::default();
    let tables = state.tables.get(&organization).unwrap_or(&none);
    let tables = &*as_of::view(tables, plan.as_of);
    let placed = match &plan.target {
        ReadTarget::Platform(table) => {
            platform_rows(state, organization, *table, &plan.visible_tables)
                .into_iter()
                .map(|(key, cells)| Placed {
                    row: RowPosition::Key(key),
                    cells,
                })
                .collect()
        }
        ReadTarget::Table(table) if table.is_raw() => points(tables, table),
        ReadTarget::Table(table) => rows(tables, table),
    };
    let mut rest: Vec<(Position, Cells)> = placed
        .into_iter()
        .filter(|row| {
            plan.conditions
                .iter()
                .all(|condition| meets(tables, &row.cells, condition))
        })
        .map(|row| (position(plan, row.row, &row.cells), row.cells))
        .filter(|(position, _)| {
            let after = plan.after.as_ref();
            after.is_none_or(|after| compare(plan, position, after).is_gt())
        })
        .collect();
    rest.sort_by(|(left, _), (right, _)| compare(plan, left, right));
    let mut page = RowPage::default();
    let (mut bytes, mut last) = (0, None);
    for (position, cells) in rest {
        if plan.is_full(page.rows.len(), bytes) {
            page.next = last;
            break;
        }
        last = Some(position);
        let row = render_columns(plan, &cells);
        bytes += row.as_str().len();
        page.rows.push(row);
    }
    page
}

fn position(plan: &ReadPlan, row: RowPosition, cells: &Cells) -> Position {
    let terms = plan.order.iter();
    let ordered = terms.map(|term| term.place(cells.get(&term.field.sql_name)));
    Position {
        ordered: ordered.collect(),
        row,
    }
}

/// Compares two places in the order of the plan, then by descending keys and ascending points.
fn compare(plan: &ReadPlan, left: &Position, right: &Position) -> Ordering {
    let values = left.ordered.iter().zip(&right.ordered);
    let ordered = plan.order.iter().zip(values);
    let ordered = ordered.fold(Ordering::Equal, |found, (term, (left, right))| {
        found.then_with(|| term.compare(left, right))
    });
    ordered.then_with(|| match (&left.row, &right.row) {
        (RowPosition::Key(left), RowPosition::Key(right)) => right.cmp(left),
        (
            RowPosition::Point { chunk, place },
            RowPosition::Point {
                chunk: other,
                place: behind,
            },
        ) => (chunk, place).cmp(&(other, behind)),
        _ => Ordering::Equal,
    })
}

fn render_columns(plan: &ReadPlan, cells: &Cells) -> RowJson {
    let columns = plan.columns.iter();
    render(columns.map(|column| (column.name.as_str(), cells.get(&column.field.sql_name))))
}

fn rows(tables: &Tables, table: &Table) -> Vec<Placed> {
    let place = |(key, row): (&KeyValue, &Row)| Placed {
        row: RowPosition::Key(key.clone()),
        cells: all_cells(row),
    };
    tables.rows_of(&table.name).rev().map(place).collect()
}

fn points(tables: &Tables, table: &Table) -> Vec<Placed> {
    let mut placed = Vec::new();
    for series in tables.series_of(&table.name) {
        for (place, cells) in &series.points {
            let row = RowPosition::Point {
                chunk: series.id,
                place: *place,
            };
            let mut cells = cells.clone();
            let execution = Scalar::Uuid(series.execution.as_uuid());
            cells.insert("created_by_execution_id".to_owned(), execution);
            placed.push(Placed { row, cells });
        }
    }
    placed
}

/// Bytes are not counted: values in memory have no stored form.
pub(super) fn read_series(
    tables: &Tables,
    plan: &SeriesPlan,
    limits: SeriesLimits,
) -> Result<SeriesColumns, ReadSeriesError> {
    if tables.row(&plan.owner.parent.name, &plan.parent).is_none() {
        return Err(ReadSeriesError::NoParent);
    }
    let parent = Scalar::from(plan.parent.clone());
    let mut found = SeriesColumns::default();
    let mut columns: Vec<(&ColumnRef, Values)> = plan
        .columns()
        .map(|column| (column, Values::with_capacity(column.data_type, 0)))
        .collect();
    let series = tables.series_of(&plan.owner.table.name).iter();
    for (_, cells) in series.flat_map(|series| &series.points) {
        if cell(cells, &plan.owner.column) != Some(&parent) {
            continue;
        }
        found.points += 1;
        limits.check(found.points, columns.len(), 0)?;
        for (column, values) in &mut columns {
            values.push_or_null(cell(cells, column).cloned());
        }
    }
    let columns = columns.into_iter();
    found.columns = columns
        .map(|(column, values)| (column.name.clone(), values))
        .collect();
    Ok(found)
}

/// A row as reads show it.
pub(super) fn render_row(table: &Table, row: &Row) -> RowJson {
    let cells = all_cells(row);
    let own = table.columns.iter();
    let own = own.map(|column| (column.name.as_str(), cell(&cells, column)));
    let system = table.system_columns().iter();
    let system = system.map(|column| (column.name, cells.get(column.name)));
    render(own.chain(system))
}

fn render<'c>(columns: impl Iterator<Item = (&'c str, Option<&'c Scalar>)>) -> RowJson {
    let map: Map<String, Value> = columns
        .map(|(name, value)| (name.to_owned(), value.map_or(Value::Null, Scalar::to_json)))
        .collect();
    RowJson::from_map(&map)
}
