//! Columns of reads.

use crate::{catalog::Table, scalar::DataType};

/// Column of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// SQL name.
    pub sql_name: String,
    /// Its type.
    pub data_type: DataType,
}

/// The column of that name in writes or in SQL.
pub(super) fn field(table: &Table, name: &str) -> Option<Field> {
    if let Some(column) = table.column(name) {
        return Some(Field {
            sql_name: column.sql_name().into_owned(),
            data_type: column.data_type,
        });
    }
    // SQL, and so results of queries, call the reference `sample` `sample_id`.
    let reference = table
        .references()
        .find(|(column, _)| column.sql_name() == name);
    if let Some((column, _)) = reference {
        return Some(Field {
            sql_name: name.to_owned(),
            data_type: column.data_type,
        });
    }
    let mut system_columns = table.system_columns().iter();
    let system = system_columns.find(|system| system.name == name)?;
    Some(Field {
        sql_name: system.name.to_owned(),
        data_type: system.data_type,
    })
}
