//! The primary key of tables that name none.

use super::Column;
use crate::scalar::DataType;

/// The generated primary key of a table that names none: a string, a UUID v7 unless given.
pub(super) fn generated_key() -> Column {
    Column {
        id: None,
        name: "id".to_owned(),
        description: Some("The row's id, generated unless given.".to_owned()),
        label: None,
        unit: None,
        data_type: DataType::String,
        is_primary_key: true,
        is_nullable: false,
        is_unique: true,
        default: None,
        references: None,
    }
}
