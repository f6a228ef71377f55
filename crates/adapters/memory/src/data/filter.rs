//! Conditions of reads.

use labdata_domain::{data::read::Condition, scalar::Scalar};

use crate::data::tables::{Cells, Row, Tables};

/// The values of a row of a curated or core table, the server's own included.
pub(super) fn all_cells(row: &Row) -> Cells {
    let system = [
        ("created_at", Scalar::Datetime(row.created_at)),
        ("updated_at", Scalar::Datetime(row.updated_at)),
        (
            "created_by_execution_id",
            Scalar::Uuid(row.created_by.as_uuid()),
        ),
        (
            "updated_by_execution_id",
            Scalar::Uuid(row.updated_by.as_uuid()),
        ),
    ];
    let mut cells = row.cells.clone();
    cells.extend(system.map(|(name, value)| (name.to_owned(), value)));
    cells
}

/// Returns whether a row meets a condition.
pub(super) fn meets(tables: &Tables, cells: &Cells, condition: &Condition) -> bool {
    let mut arrived: Option<Cells> = None;
    for hop in &condition.hops {
        let from = arrived.as_ref().unwrap_or(cells);
        let key = from
            .get(&hop.sql_column)
            .cloned()
            .and_then(Scalar::into_key);
        let row = key.and_then(|key| tables.row(&hop.table.name, &key));
        // Without a row, every value is null.
        arrived = Some(row.map(all_cells).unwrap_or_default());
    }
    let reached = arrived.as_ref().unwrap_or(cells);
    condition
        .test
        .accepts(reached.get(&condition.field.sql_name))
}
