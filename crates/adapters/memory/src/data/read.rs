//! Reading pages of rows.

use std::cmp::Ordering;

use labdata_domain::{
    catalog::Table,
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
    filter::{Named, meets, named_cells, named_row, value_of},
    platform::platform_rows,
};
use crate::{
    data::tables::{Row, Tables},
    memory::State,
};

/// A row with its place in the order in which its target's rows are read.
struct Placed {
    row: RowPosition,
    named: Named,
}

pub(super) fn read(state: &State, organization: OrganizationId, plan: &ReadPlan) -> RowPage {
    let none = Tables::default();
    let tables = state.tables.get(&organization).unwrap_or(&none);
    let placed = match &plan.target {
        ReadTarget::Platform(table) => platform_rows(state, organization, *table)
            .into_iter()
            .map(|(key, named)| Placed {
                row: RowPosition::Key(key),
                named,
            })
            .collect(),
        ReadTarget::Table(table) if table.is_raw() => points(tables, table),
        ReadTarget::Table(table) => rows(tables, table),
    };
    let mut rest: Vec<(Position, Named)> = placed
        .into_iter()
        .filter(|row| {
            plan.conditions
                .iter()
                .all(|condition| meets(tables, &row.named, condition))
        })
        .map(|row| (position(plan, row.row, &row.named), row.named))
        .filter(|(position, _)| {
            let after = plan.after.as_ref();
            after.is_none_or(|after| compare(plan, position, after).is_gt())
        })
        .collect();
    rest.sort_by(|(left, _), (right, _)| compare(plan, left, right));
    let mut page = RowPage::default();
    let (mut bytes, mut last) = (0, None);
    for (position, named) in rest {
        if plan.is_full(page.rows.len(), bytes) {
            page.next = last;
            break;
        }
        last = Some(position);
        let row = render_columns(plan, &named);
        bytes += row.as_str().len();
        page.rows.push(row);
    }
    page
}

fn position(plan: &ReadPlan, row: RowPosition, named: &Named) -> Position {
    let terms = plan.order.iter();
    let ordered = terms.map(|term| term.place(value_of(named, &term.field.sql_name)));
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

fn render_columns(plan: &ReadPlan, named: &Named) -> RowJson {
    let displayed = plan.columns.iter().map(|column| {
        let value = value_of(named, &column.field.sql_name).cloned();
        (column.name.clone(), value)
    });
    render(&displayed.collect())
}

fn rows(tables: &Tables, table: &Table) -> Vec<Placed> {
    let place = |(key, row): (&KeyValue, &Row)| Placed {
        row: RowPosition::Key(key.clone()),
        named: named_row(table, row),
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
            placed.push(Placed {
                row,
                named: named_cells(table, cells),
            });
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
    if tables.row(&plan.parent_table.name, &plan.parent).is_none() {
        return Err(ReadSeriesError::NoParent);
    }
    let parent = Some(Scalar::from(plan.parent.clone()));
    let mut found = SeriesColumns::default();
    let mut columns: Vec<(usize, Values)> = plan
        .columns()
        .map(|(index, column)| (index, Values::with_capacity(column.data_type, 0)))
        .collect();
    let series = tables.series_of(&plan.table.name).iter();
    for (_, cells) in series.flat_map(|series| &series.points) {
        if cells.get(plan.parent_column) != Some(&parent) {
            continue;
        }
        found.points += 1;
        limits.check(found.points, columns.len(), 0)?;
        for (index, values) in &mut columns {
            match cells.get(*index).cloned().flatten() {
                Some(value) => values.push(value),
                None => values.push_null(),
            }
        }
    }
    found.columns = plan
        .columns()
        .zip(columns)
        .map(|((_, column), (_, values))| (column.name.clone(), values))
        .collect();
    Ok(found)
}

/// A row as it is answered.
pub(super) fn render_row(table: &Table, row: &Row) -> RowJson {
    render(&read_names(table, named_row(table, row)))
}

/// Renames a table's own columns, which come first, from SQL to how they are read.
fn read_names(table: &Table, mut named: Named) -> Named {
    for ((name, _), column) in named.iter_mut().zip(&table.columns) {
        name.clone_from(&column.name);
    }
    named
}

fn render(named: &Named) -> RowJson {
    let map: Map<String, Value> = named
        .iter()
        .map(|(name, value)| {
            (
                name.clone(),
                value.as_ref().map_or(Value::Null, Scalar::to_json),
            )
        })
        .collect();
    RowJson::from_map(&map)
}
