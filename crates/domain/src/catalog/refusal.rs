//! Reasons why a table or a column is not defined or dropped.

use super::{Catalog, ColumnRole, Origin, Table, Violation};

use crate::{
    refusal::{ErrorCode, Refuse},
    scalar::DataType,
};

/// Reason why a table is not defined or dropped, or a column not dropped; displays as a sentence for the person who asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CatalogRefusal {
    /// The definition is wrong in itself, or would lose stored data; one sentence per reason.
    #[error("{}", .0.join("; "))]
    Definition(Vec<String>),
    /// Stored rows break a constraint of the definition.
    #[error("the stored rows do not allow it: {0}")]
    Violation(Violation),
    /// Values of a column have no exact counterpart in its new type; a few of them, the smallest first.
    #[error(
        "column \"{column}\" of \"{table}\" cannot become {data_type}, which cannot store these values of its rows or of their earlier versions exactly: {}",
        .values.join(", ")
    )]
    Inexact {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// Its new type.
        data_type: DataType,
        /// At most [`MAX_INEXACT_VALUES`](super::MAX_INEXACT_VALUES).
        values: Vec<String>,
    },
    /// The table belongs to the platform.
    #[error("\"{0}\" is a core table and cannot be dropped")]
    CoreTable(String),
    /// Other tables reference the table.
    #[error("\"{table}\" is referenced by {}; drop those tables first", .by.join(", "))]
    Referenced {
        /// The table.
        table: String,
        /// The tables that reference it.
        by: Vec<String>,
    },
    /// The table holds rows or points.
    #[error("\"{0}\" is not empty; set force to drop it with its rows")]
    NotEmpty(String),
    /// The column belongs to the platform.
    #[error("column \"{column}\" of \"{table}\" belongs to the platform and cannot be dropped")]
    PlatformColumn {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// The table needs the column.
    #[error("column \"{column}\" of \"{table}\" cannot be dropped: {role}")]
    NeededColumn {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// Its role in the table.
        role: ColumnRole,
    },
    /// The column holds values.
    #[error("column \"{column}\" of \"{table}\" holds values; set force to drop it with them")]
    ColumnHoldsValues {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
}

impl CatalogRefusal {
    /// The same, as a caller may read it: tables that are not in the caller's view of the catalog are not named.
    #[must_use]
    pub fn seen_in(self, view: &Catalog) -> Self {
        match self {
            Self::Referenced { table, mut by } => {
                let count = by.len();
                by.retain(|name| view.table(name).is_some());
                if by.len() < count {
                    by.push("a table that you may not see".to_owned());
                }
                Self::Referenced { table, by }
            }
            other => other,
        }
    }
}

impl Refuse for CatalogRefusal {
    fn code(&self) -> ErrorCode {
        match self {
            Self::Definition(_) => ErrorCode::InvalidDefinition,
            Self::Violation(_) | Self::Inexact { .. } => ErrorCode::StoredRowsConflict,
            Self::CoreTable(_) => ErrorCode::PlatformTable,
            Self::Referenced { .. } => ErrorCode::TableReferenced,
            Self::NotEmpty(_) => ErrorCode::TableNotEmpty,
            Self::PlatformColumn { .. } => ErrorCode::PlatformColumn,
            Self::NeededColumn { .. } => ErrorCode::ColumnNeeded,
            Self::ColumnHoldsValues { .. } => ErrorCode::ColumnNotEmpty,
        }
    }
}

impl Catalog {
    /// Checks that a table can be dropped. `is_empty` tells whether it holds neither rows nor
    /// points; with `force` it may hold some.
    ///
    /// # Errors
    /// [`CatalogRefusal::CoreTable`], [`CatalogRefusal::Referenced`] by another table, or
    /// [`CatalogRefusal::NotEmpty`], the first that applies.
    pub fn check_drop(
        &self,
        table: &Table,
        is_empty: bool,
        force: bool,
    ) -> Result<(), CatalogRefusal> {
        let name = &table.name;
        if table.origin == Origin::Core {
            return Err(CatalogRefusal::CoreTable(name.clone()));
        }
        let mut by: Vec<String> = self
            .referencing(name)
            .map(|(other, _)| other.name.clone())
            // References within the table are dropped with it.
            .filter(|other| other != name)
            .collect();
        // Columns of one table follow each other, so this finds all repetitions.
        by.dedup();
        if !by.is_empty() {
            return Err(CatalogRefusal::Referenced {
                table: name.clone(),
                by,
            });
        }
        if !is_empty && !force {
            return Err(CatalogRefusal::NotEmpty(name.clone()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{CatalogVersion, Column, SemanticCategory};

    fn table(name: &str, references: &[&str]) -> Table {
        let column = |target: &&str| Column {
            id: None,
            name: (*target).to_owned(),
            description: None,
            label: None,
            unit: None,
            data_type: DataType::String,
            is_primary_key: false,
            is_nullable: true,
            is_unique: false,
            default: None,
            references: Some((*target).to_owned()),
        };
        Table {
            id: None,
            name: name.to_owned(),
            description: None,
            category: SemanticCategory::Curated,
            origin: Origin::Organization,
            columns: references.iter().map(column).collect(),
            unique_together: Vec::new(),
            history: true,
            access: crate::catalog::TableAccess::default(),
        }
    }

    fn check(name: &str, is_empty: bool, force: bool) -> Result<(), String> {
        let tables = vec![
            table("step", &["step"]),
            table("sample", &[]),
            table("remark", &["sample", "sample"]),
            table("aliquot", &["sample"]),
        ];
        let catalog = Catalog::new(CatalogVersion(1), tables);
        let table = catalog.table(name).unwrap();
        catalog
            .check_drop(table, is_empty, force)
            .map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn a_table_with_rows_is_dropped_by_force_only() {
        assert_eq!(check("remark", true, false), Ok(()));
        assert_eq!(check("remark", false, true), Ok(()));
        assert_eq!(
            check("remark", false, false),
            Err("\"remark\" is not empty; set force to drop it with its rows".to_owned())
        );
    }

    #[test]
    fn a_table_that_others_reference_is_never_dropped_but_one_that_references_itself_may_be() {
        let refused =
            "\"sample\" is referenced by remark, aliquot; drop those tables first".to_owned();
        assert_eq!(check("sample", true, true), Err(refused.clone()));
        assert_eq!(check("sample", false, false), Err(refused));
        assert_eq!(check("step", true, false), Ok(()));
    }

    #[test]
    fn a_core_table_is_never_dropped() {
        assert_eq!(
            check("operation", true, true),
            Err("\"operation\" is a core table and cannot be dropped".to_owned())
        );
    }
}
