//! Table definitions for clauses.

use labdata_domain::{
    catalog::{ColumnDefinition, SemanticCategory, TableDefinition},
    scalar::DataType,
};

/// A column that may be null.
#[must_use]
pub fn column(name: &str, data_type: DataType) -> ColumnDefinition {
    ColumnDefinition {
        description: Some(format!("What {name} holds")),
        ..ColumnDefinition::new(name, data_type)
    }
}

/// A column that must not be null.
#[must_use]
pub fn required(name: &str, data_type: DataType) -> ColumnDefinition {
    ColumnDefinition {
        is_nullable: false,
        ..column(name, data_type)
    }
}

/// A column without null whose values differ.
#[must_use]
pub fn unique(name: &str, data_type: DataType) -> ColumnDefinition {
    ColumnDefinition {
        is_unique: true,
        ..required(name, data_type)
    }
}

/// The primary key, in place of the generated one.
#[must_use]
pub fn key(name: &str, data_type: DataType) -> ColumnDefinition {
    ColumnDefinition {
        is_primary_key: true,
        ..required(name, data_type)
    }
}

/// A reference, of the same name, to a table with a generated key.
#[must_use]
pub fn reference(target: &str) -> ColumnDefinition {
    ColumnDefinition {
        references: Some(target.to_owned()),
        ..column(target, DataType::String)
    }
}

/// A table of rows.
#[must_use]
pub fn curated(name: &str, columns: Vec<ColumnDefinition>) -> TableDefinition {
    TableDefinition {
        description: Some(format!("What {name} is about")),
        ..TableDefinition::new(name, columns)
    }
}

/// A table of series.
#[must_use]
pub fn raw(name: &str, columns: Vec<ColumnDefinition>) -> TableDefinition {
    TableDefinition {
        category: SemanticCategory::Raw,
        ..curated(name, columns)
    }
}

/// `sample`: a unique name, a volume and a note.
#[must_use]
pub fn sample() -> TableDefinition {
    let columns = vec![
        unique("name", DataType::String),
        column("volume", DataType::Float),
        column("note", DataType::Text),
    ];
    curated("sample", columns)
}

/// `measurement`: a sample and a value.
#[must_use]
pub fn measurement() -> TableDefinition {
    curated(
        "measurement",
        vec![reference("sample"), column("value", DataType::Float)],
    )
}

/// `curve`: a sample's series of a time and an optional optical density.
#[must_use]
pub fn curve() -> TableDefinition {
    let columns = vec![
        reference("sample"),
        required("order", DataType::Integer),
        required("time", DataType::Float),
        column("od", DataType::Float),
    ];
    raw("curve", columns)
}
