//! Conditions of reads.

use labdata_domain::{catalog::Table, data::read::Condition, scalar::Scalar};

use crate::data::tables::{Row, Tables};

/// A row's values by their names in SQL.
pub(super) type Named = Vec<(String, Option<Scalar>)>;

/// The values of a row of a curated or core table, the server's own included.
pub(super) fn named_row(table: &Table, row: &Row) -> Named {
    let mut named = named_cells(table, &row.cells);
    named.push((
        "created_at".to_owned(),
        Some(Scalar::Datetime(row.created_at)),
    ));
    named.push((
        "updated_at".to_owned(),
        Some(Scalar::Datetime(row.updated_at)),
    ));
    named.push((
        "created_by_execution_id".to_owned(),
        Some(Scalar::Uuid(row.created_by.as_uuid())),
    ));
    named
}

/// The values of a table's own columns.
pub(super) fn named_cells(table: &Table, cells: &[Option<Scalar>]) -> Named {
    table
        .columns
        .iter()
        .map(|column| column.sql_name().into_owned())
        .zip(cells.iter().cloned())
        .collect()
}

/// Returns whether a row meets a condition.
pub(super) fn meets(tables: &Tables, named: &Named, condition: &Condition) -> bool {
    let mut arrived: Option<Named> = None;
    for hop in &condition.hops {
        let from = arrived.as_ref().unwrap_or(named);
        let key = value_of(from, &hop.sql_column)
            .cloned()
            .and_then(Scalar::into_key);
        let row = key.and_then(|key| tables.row(&hop.table.name, &key));
        // Without a row, every value is null.
        arrived = Some(
            row.map(|row| named_row(&hop.table, row))
                .unwrap_or_default(),
        );
    }
    let value = value_of(arrived.as_ref().unwrap_or(named), &condition.field.sql_name);
    condition.test.accepts(value)
}

/// The value of a column by its name in SQL.
pub(super) fn value_of<'n>(named: &'n Named, name: &str) -> Option<&'n Scalar> {
    named.iter().find(|(given, _)| given == name)?.1.as_ref()
}
