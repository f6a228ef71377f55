//! Comments of tables and columns, which tools show beside their names.

use crate::catalog::{Column, HIDDEN_TABLE, Table};

/// The comment of a table.
#[must_use]
pub fn table_comment(table: &Table) -> Option<String> {
    table.description.clone()
}

/// The comment of a column: what describes it, its unit, and the reference that a view cannot declare.
#[must_use]
pub fn column_comment(table: &Table, column: &Column) -> Option<String> {
    let text = column.description.as_ref().or(column.label.as_ref());
    let unit = column.unit.as_ref().map(|unit| format!("[{unit}]"));
    let reference = column
        .references
        .as_ref()
        .filter(|target| table.is_raw() && *target != HIDDEN_TABLE)
        .map(|target| format!("(references {target})"));
    let parts: Vec<String> = text
        .cloned()
        .into_iter()
        .chain(unit)
        .chain(reference)
        .collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        catalog::{Origin, SemanticCategory, TableAccess},
        scalar::DataType,
    };

    fn table(category: SemanticCategory) -> Table {
        Table {
            id: None,
            name: "t".to_owned(),
            description: None,
            category,
            origin: Origin::Organization,
            columns: Vec::new().into(),
            unique_together: Vec::new(),
            history: true,
            access: TableAccess::default(),
        }
    }

    fn column() -> Column {
        Column {
            id: None,
            name: "c".to_owned(),
            description: None,
            label: None,
            unit: None,
            data_type: DataType::Float,
            is_primary_key: false,
            is_nullable: true,
            is_unique: false,
            default: None,
            references: None,
        }
    }

    #[test]
    fn a_comment_describes_and_names_unit_and_reference() {
        let (curated, raw) = (
            table(SemanticCategory::Curated),
            table(SemanticCategory::Raw),
        );
        assert_eq!(column_comment(&curated, &column()), None);
        let described = Column {
            label: Some("Yield".to_owned()),
            unit: Some("mg/L".to_owned()),
            references: Some("sample".to_owned()),
            ..column()
        };
        assert_eq!(
            column_comment(&curated, &described).unwrap(),
            "Yield [mg/L]"
        );
        assert_eq!(
            column_comment(&raw, &described).unwrap(),
            "Yield [mg/L] (references sample)"
        );
        let described = Column {
            description: Some("Of one batch".to_owned()),
            ..described
        };
        assert_eq!(
            column_comment(&curated, &described).unwrap(),
            "Of one batch [mg/L]"
        );
    }
}
