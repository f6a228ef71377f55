//! Reading pages of rows.

use labdata_domain::{
    catalog::Table,
    data::read::{
        Position, ReadPlan, ReadTarget, RowJson, RowPage, SeriesColumns, SeriesLimits, SeriesPlan,
    },
    ids::OrganizationId,
    scalar::{KeyValue, Scalar, Values},
};
use labdata_ports::data::ReadSeriesError;
use serde_json::{Map, Value};

use super::{
    filter::{Named, meets, named_cells, named_row},
    platform::platform_rows,
};
use crate::{
    data::tables::{Row, Tables},
    memory::State,
};

/// A row with its place in the order in which rows are read.
struct Placed {
    position: Position,
    named: Named,
}

pub(super) fn read(state: &State, organization: OrganizationId, plan: &ReadPlan) -> RowPage {
    let none = Tables::default();
    let tables = state.tables.get(&organization).unwrap_or(&none);
    let placed = match &plan.target {
        ReadTarget::Platform(table) => platform_rows(state, organization, *table)
            .into_iter()
            .map(|(key, named)| Placed {
                position: Position::Key(key),
                named,
            })
            .collect(),
        ReadTarget::Table(table) if table.is_raw() => points(tables, table),
        ReadTarget::Table(table) => rows(tables, table),
    };
    let rest = placed
        .into_iter()
        .filter(|row| {
            plan.after
                .as_ref()
                .is_none_or(|after| is_behind(&row.position, after))
        })
        .filter(|row| {
            plan.conditions
                .iter()
                .all(|condition| meets(tables, &row.named, condition))
        });
    let render_named = |named: Named| match &plan.target {
        ReadTarget::Table(table) => render(&read_names(table, named)),
        ReadTarget::Platform(_) => render(&named),
    };
    let mut page = RowPage::default();
    let (mut bytes, mut last) = (0, None);
    for row in rest {
        if plan.is_full(page.rows.len(), bytes) {
            page.next = last;
            break;
        }
        last = Some(row.position);
        let row = render_named(row.named);
        bytes += row.as_str().len();
        page.rows.push(row);
    }
    page
}

/// Keys descend, points ascend.
fn is_behind(position: &Position, after: &Position) -> bool {
    match (position, after) {
        (Position::Key(key), Position::Key(after)) => key < after,
        (
            Position::Point { chunk, place },
            Position::Point {
                chunk: last,
                place: behind,
            },
        ) => (chunk, place) > (last, behind),
        _ => false,
    }
}

fn rows(tables: &Tables, table: &Table) -> Vec<Placed> {
    let place = |(key, row): (&KeyValue, &Row)| Placed {
        position: Position::Key(key.clone()),
        named: named_row(table, row),
    };
    tables.rows_of(&table.name).rev().map(place).collect()
}

fn points(tables: &Tables, table: &Table) -> Vec<Placed> {
    let mut placed = Vec::new();
    for series in tables.series_of(&table.name) {
        for (place, cells) in &series.points {
            let position = Position::Point {
                chunk: series.id,
                place: *place,
            };
            placed.push(Placed {
                position,
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
