//! Tables that are read in parts.

use std::collections::BTreeSet;

use labdata_domain::{
    data::read::{ExportPlan, ManySeriesPlan, SeriesParents, TablePart},
    scalar::{DataType, KeyValue, Scalar, Values},
};
use labdata_ports::data::parts::{PartSink, StreamError};

use super::filter::{all_cells, meets};
use crate::data::tables::{Tables, cell};

pub(super) async fn send(
    parts: Vec<TablePart>,
    mut sink: Box<dyn PartSink>,
) -> Result<(), StreamError> {
    for part in parts {
        sink.part(part).await?;
    }
    Ok(sink.end().await?)
}

pub(super) fn series(
    tables: &Tables,
    plan: &ManySeriesPlan,
) -> Result<Vec<TablePart>, StreamError> {
    let parents = &plan.owner.parent;
    if plan.owner.is_parent_hidden {
        return of_hidden_parents(tables, plan);
    }
    let keys: Vec<KeyValue> = match &plan.parents {
        SeriesParents::Keys(keys) => keys.clone(),
        SeriesParents::Matching(conditions) => tables
            .rows_of(&parents.name)
            .filter(|(_, row)| {
                let cells = all_cells(row);
                let mut conditions = conditions.iter();
                conditions.all(|condition| meets(tables, &cells, condition))
            })
            .map(|(key, _)| key.clone())
            .collect(),
    };
    if let Some(missing) = keys
        .iter()
        .find(|key| tables.row(&parents.name, key).is_none())
    {
        return Err(StreamError::NoParent(missing.clone()));
    }
    Ok(keys.into_iter().map(|key| of(tables, plan, key)).collect())
}

/// The series of rows that own points; other rows do not exist for the caller.
fn of_hidden_parents(
    tables: &Tables,
    plan: &ManySeriesPlan,
) -> Result<Vec<TablePart>, StreamError> {
    let owners: BTreeSet<KeyValue> = tables
        .cells_of(&plan.owner.table.name)
        .filter_map(|cells| cell(cells, &plan.owner.column).cloned()?.into_key())
        .collect();
    let keys: Vec<KeyValue> = match &plan.parents {
        SeriesParents::Keys(keys) => keys.clone(),
        SeriesParents::Matching(_) => owners.iter().cloned().collect(),
    };
    if let Some(missing) = keys.iter().find(|key| !owners.contains(key)) {
        return Err(StreamError::NoParent(missing.clone()));
    }
    Ok(keys.into_iter().map(|key| of(tables, plan, key)).collect())
}

fn of(tables: &Tables, plan: &ManySeriesPlan, key: KeyValue) -> TablePart {
    let parent = Scalar::from(key.clone());
    let series = tables.series_of(&plan.owner.table.name).iter();
    let rows: Vec<_> = series
        .flat_map(|series| &series.points)
        .map(|(_, cells)| cells)
        .filter(|cells| cell(cells, &plan.owner.column) == Some(&parent))
        .collect();
    let columns = plan.columns.iter().map(|column| {
        let cells = rows.iter().map(|cells| cell(cells, column).cloned());
        values(column.data_type, cells)
    });
    TablePart {
        parent: Some(key),
        columns: columns.collect(),
        rows: rows.len(),
        bytes: 0,
    }
}

pub(super) fn table(tables: &Tables, plan: &ExportPlan) -> TablePart {
    let table = &plan.table;
    let rows: Vec<_> = if table.is_raw() {
        let series = tables.series_of(&table.name).iter();
        let points = series.flat_map(|series| &series.points);
        points.map(|(_, cells)| cells.clone()).collect()
    } else {
        let rows = tables.rows_of(&table.name);
        rows.map(|(_, row)| all_cells(row)).collect()
    };
    let columns = plan.columns().into_iter().map(|column| {
        let cells = rows
            .iter()
            .map(|row| row.get(&column.field.sql_name).cloned());
        values(column.field.data_type, cells)
    });
    TablePart {
        parent: None,
        columns: columns.collect(),
        rows: rows.len(),
        bytes: 0,
    }
}

fn values(data_type: DataType, cells: impl Iterator<Item = Option<Scalar>>) -> Values {
    let mut values = Values::with_capacity(data_type, 0);
    cells.for_each(|cell| values.push_or_null(cell));
    values
}
