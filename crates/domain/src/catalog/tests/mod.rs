//! The rules of definitions and their changes, each as a sentence.

mod changes;
mod definitions;
mod ensured;
mod names_in_queries;
mod removals;
mod renames;
mod tables;

use super::{
    Catalog, CatalogVersion, ColumnDefinition, SemanticCategory, SystemColumn, Table,
    TableDefinition,
};
use crate::scalar::DataType;

fn column(name: &str, data_type: DataType) -> ColumnDefinition {
    ColumnDefinition::new(name, data_type)
}

fn key(name: &str, data_type: DataType) -> ColumnDefinition {
    ColumnDefinition {
        is_primary_key: true,
        ..column(name, data_type)
    }
}

fn required(column: ColumnDefinition) -> ColumnDefinition {
    ColumnDefinition {
        is_nullable: false,
        ..column
    }
}

fn unique(column: ColumnDefinition) -> ColumnDefinition {
    ColumnDefinition {
        is_unique: true,
        ..column
    }
}

fn reference(name: &str, target: &str, data_type: DataType) -> ColumnDefinition {
    ColumnDefinition {
        references: Some(target.to_owned()),
        ..column(name, data_type)
    }
}

fn curated(name: &str, columns: Vec<ColumnDefinition>) -> TableDefinition {
    TableDefinition {
        columns,
        ..TableDefinition::new(name, Vec::new())
    }
}

fn raw(name: &str, columns: Vec<ColumnDefinition>) -> TableDefinition {
    TableDefinition {
        category: SemanticCategory::Raw,
        ..curated(name, columns)
    }
}

fn together(groups: &[&[&str]]) -> Vec<Vec<String>> {
    groups
        .iter()
        .map(|group| group.iter().map(|name| (*name).to_owned()).collect())
        .collect()
}

/// A catalog of the tables, in which each may reference those before it.
fn catalog(definitions: impl IntoIterator<Item = TableDefinition>) -> Catalog {
    let mut tables: Vec<Table> = Vec::new();
    for definition in definitions {
        let before = Catalog::new(CatalogVersion(1), tables.clone());
        let mut table = definition.resolve(&before).unwrap();
        table.id = i64::try_from(tables.len()).ok();
        let mut ids = 0..;
        table.columns.update(|column| column.id = ids.next());
        tables.push(table);
    }
    Catalog::new(CatalogVersion(1), tables)
}

/// A sample with an integer key, and a curve of it.
fn lab() -> Catalog {
    catalog([
        curated(
            "sample",
            vec![
                key("number", DataType::Integer),
                column("name", DataType::String),
            ],
        ),
        raw(
            "curve",
            vec![
                reference("sample", "sample", DataType::Integer),
                column("od", DataType::Float),
            ],
        ),
    ])
}
