//! Tables that are read in parts.

use labdata_domain::{
    data::read::{ExportPlan, ManySeriesPlan, SeriesParents, TablePart},
    scalar::{DataType, KeyValue, Scalar, Values},
};
use labdata_ports::data::parts::{PartSink, StreamError};

use super::filter::{meets, named_cells, named_row, value_of};
use crate::data::tables::Tables;

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
    let parents = &plan.parent_table;
    let keys: Vec<KeyValue> = match &plan.parents {
        SeriesParents::Keys(keys) => keys.clone(),
        SeriesParents::Matching(conditions) => tables
            .rows_of(&parents.name)
            .filter(|(_, row)| {
                let named = named_row(parents, row);
                let mut conditions = conditions.iter();
                conditions.all(|condition| meets(tables, &named, condition))
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

fn of(tables: &Tables, plan: &ManySeriesPlan, key: KeyValue) -> TablePart {
    let parent = Some(Scalar::from(key.clone()));
    let series = tables.series_of(&plan.table.name).iter();
    let rows: Vec<_> = series
        .flat_map(|series| &series.points)
        .map(|(_, cells)| cells)
        .filter(|cells| cells.get(plan.parent_column) == Some(&parent))
        .collect();
    let columns = plan.series_columns().map(|(index, column)| {
        let cells = rows.iter().map(|cells| cells.get(index).cloned().flatten());
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
        points.map(|(_, cells)| named_cells(table, cells)).collect()
    } else {
        let rows = tables.rows_of(&table.name);
        rows.map(|(_, row)| named_row(table, row)).collect()
    };
    let columns = plan.columns().into_iter().map(|column| {
        let cells = rows
            .iter()
            .map(|row| value_of(row, &column.field.sql_name).cloned());
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
