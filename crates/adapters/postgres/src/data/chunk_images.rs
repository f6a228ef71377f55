//! Chunks of series in the history: arrays of numbers as chunks store them, all else as JSON.
//!
//! PostgreSQL takes ten times as long to write numbers as JSON as to copy their arrays.

use std::iter;

use labdata_domain::catalog::Table;

use crate::{
    catalog::ddl::{CHUNK_COLUMNS, CHUNK_ORDER, array_attribute, stored_columns},
    database::sql::{ident, literal},
};

/// The attributes of `labdata.named_array` after its name, in their order.
const ATTRIBUTES: [&str; 6] = [
    "integers",
    "floats",
    "booleans",
    "datetimes",
    "dates",
    "uuids",
];

/// A column of a chunk.
struct ChunkColumn {
    sql_name: String,
    /// The attribute of `labdata.named_array` that stores the column; `None` if it is stored as JSON.
    attribute: Option<&'static str>,
}

fn chunk_columns(table: &Table) -> impl Iterator<Item = ChunkColumn> {
    let own = CHUNK_COLUMNS.into_iter().map(|name| ChunkColumn {
        sql_name: name.to_owned(),
        attribute: None,
    });
    let order = ChunkColumn {
        sql_name: CHUNK_ORDER.to_owned(),
        attribute: Some("integers"),
    };
    let stored = stored_columns(table).map(|column| ChunkColumn {
        sql_name: column.sql_name().into_owned(),
        attribute: array_attribute(column),
    });
    own.chain(iter::once(order)).chain(stored)
}

/// The columns `before` and `_arrays` of a chunk of that alias, as it is stored.
pub(super) fn image(table: &Table, alias: &str) -> String {
    let (mut arrays, mut rest) = (Vec::new(), Vec::new());
    for ChunkColumn {
        sql_name,
        attribute,
    } in chunk_columns(table)
    {
        let value = format!("{alias}.{}", ident(&sql_name));
        let Some(attribute) = attribute else {
            rest.push(value);
            continue;
        };
        let values = ATTRIBUTES.map(|it| if it == attribute { &*value } else { "NULL" });
        arrays.push(format!(
            "ROW({}, {})::labdata.named_array",
            literal(&sql_name),
            values.join(", ")
        ));
    }
    format!(
        // A subquery, because a table may have more columns than a function has arguments.
        "(SELECT row_to_json(s.*) FROM (SELECT {}) s) AS before, ARRAY[{}] AS _arrays",
        rest.join(", "),
        arrays.join(", ")
    )
}

/// Chunks as recorded changes have them.
pub(super) struct FormerChunks {
    /// An item of FROM after that of the changes.
    pub(super) from: String,
    /// The columns of a chunk.
    pub(super) names: String,
    /// The expressions of the columns, by their names.
    pub(super) values: String,
}

impl FormerChunks {
    /// # Arguments
    /// `name` is the qualified and quoted name of the table's chunks, and `change` the alias of the changes.
    pub(super) fn of(table: &Table, name: &str, change: &str) -> Self {
        let (mut names, mut values) = (Vec::new(), Vec::new());
        // One look at the arrays for all columns, which PostgreSQL would otherwise fetch for each.
        let mut arrays = Vec::new();
        for (index, column) in chunk_columns(table).enumerate() {
            let column_name = ident(&column.sql_name);
            values.push(match column.attribute {
                Some(attribute) => {
                    arrays.push(format!(
                        "max(e.{attribute}) FILTER (WHERE e.name = {}) AS v{index}",
                        literal(&column.sql_name)
                    ));
                    // Changes without arrays have the column in their JSON.
                    format!("coalesce(a.v{index}, s.{column_name}) AS {column_name}")
                }
                None => format!("s.{column_name}"),
            });
            names.push(column_name);
        }
        Self {
            from: format!(
                "CROSS JOIN LATERAL json_populate_record(NULL::{name}, {change}.before) s \
                 CROSS JOIN LATERAL (SELECT {} FROM unnest({change}.arrays) e) a",
                arrays.join(", ")
            ),
            names: names.join(", "),
            values: values.join(", "),
        }
    }
}
