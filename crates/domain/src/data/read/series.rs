//! Column-wise reads of one series.

use crate::{
    catalog::{Catalog, ColumnRef, Owner, Table},
    numbers::grouped,
    refusal::{ErrorCode, RefusalKind, Refuse},
    scalar::{KeyValue, Values},
};

/// Read of a series, validated against the catalog.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesPlan {
    /// The raw table, and its reference to the parent.
    pub owner: Owner,
    /// Primary key of the parent.
    pub parent: KeyValue,
}

/// Reason why a series cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SeriesRefusal {
    /// No table has the name.
    #[error("table not found")]
    NoTable,
    /// The parent is no valid key of its table, so no row has it.
    #[error("parent not found")]
    NoParent,
    /// The named parent is no valid key of its table, so no row has it.
    #[error("parent \"{0}\" not found")]
    UnknownParent(String),
    /// The request is invalid; the text is for the client.
    #[error("{0}")]
    Invalid(String),
}

impl Refuse for SeriesRefusal {
    fn code(&self) -> ErrorCode {
        match self {
            Self::NoTable | Self::NoParent | Self::UnknownParent(_) => ErrorCode::NotFound,
            Self::Invalid(_) => ErrorCode::NotASeries,
        }
    }

    fn kind(&self) -> RefusalKind {
        match self {
            Self::NoTable | Self::NoParent | Self::UnknownParent(_) => RefusalKind::NotFound,
            Self::Invalid(_) => RefusalKind::Invalid,
        }
    }
}

impl SeriesPlan {
    /// Finds the table and the reference to the parent.
    ///
    /// # Errors
    /// [`SeriesRefusal`]; a table that is not raw, and a missing `parent_column` of a table with several
    /// references, are invalid.
    pub fn new(
        catalog: &Catalog,
        table: &str,
        parent_column: Option<&str>,
        parent: &str,
    ) -> Result<Self, SeriesRefusal> {
        let owner = find_owner(catalog, table, parent_column)?;
        let parent =
            KeyValue::parse(parent, owner.column.data_type).ok_or(SeriesRefusal::NoParent)?;
        Ok(Self { owner, parent })
    }

    /// Returns the columns of a series in the table's order: all but the reference to the parent.
    pub fn columns(&self) -> impl Iterator<Item = &ColumnRef> {
        let columns = self.owner.table.columns.iter();
        columns.filter(|column| **column != self.owner.column)
    }
}

/// Finds a raw table and the reference by which rows own its points.
pub(super) fn find_owner(
    catalog: &Catalog,
    table: &str,
    parent_column: Option<&str>,
) -> Result<Owner, SeriesRefusal> {
    let table = catalog.table(table).ok_or(SeriesRefusal::NoTable)?;
    if !table.is_raw() {
        return Err(SeriesRefusal::Invalid(format!(
            "\"{}\" has rows, no series: read it with tools/read or tools/query",
            table.name
        )));
    }
    let (column, _) = reference(table, parent_column)?;
    let owner = catalog.owner(table, column);
    owner.ok_or(SeriesRefusal::NoTable)
}

fn reference<'t>(
    table: &'t Table,
    name: Option<&str>,
) -> Result<(&'t ColumnRef, &'t str), SeriesRefusal> {
    let references: Vec<(&ColumnRef, &str)> = table.references().collect();
    let found = match (name, references.as_slice()) {
        (Some(name), _) => references
            .iter()
            .find(|(column, _)| column.name == name)
            .copied(),
        (None, [only]) => Some(*only),
        (None, _) => None,
    };
    found.ok_or_else(|| {
        let names: Vec<&str> = references
            .iter()
            .map(|(column, _)| column.name.as_str())
            .collect();
        let names = names.join(", ");
        SeriesRefusal::Invalid(match name {
            Some(_) => format!("parent_column must be a reference of the table: {names}"),
            None => format!("the table has several references; name one as parent_column: {names}"),
        })
    })
}

/// Columns of a series, with its points in the order in which they were written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeriesColumns {
    /// Name and values of each column, one value per point, without the reference to the parent.
    pub columns: Vec<(String, Values)>,
    /// Number of points.
    pub points: usize,
}

/// Limits of one read of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesLimits {
    /// Maximum number of values, nulls included.
    pub values: usize,
    /// Maximum number of stored bytes.
    pub bytes: usize,
}

/// Limits of one series: sixteen columns of 125,000 points, and some 250 bytes for each point.
pub const SERIES_LIMITS: SeriesLimits = SeriesLimits {
    values: 2_000_000,
    bytes: 32 << 20,
};

/// Error: a series exceeds the limits of one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the series has more than {} values or {} MiB: read parts of it with tools/query",
    grouped(.0.values),
    .0.bytes >> 20
)]
pub struct SeriesTooLarge(SeriesLimits);

impl Refuse for SeriesTooLarge {
    fn code(&self) -> ErrorCode {
        ErrorCode::ResultTooLarge
    }
}

impl SeriesLimits {
    /// Checks the size of a series: its points, its columns without the reference to the parent, and
    /// its stored bytes (0 for a store that has no stored form).
    ///
    /// # Errors
    /// [`SeriesTooLarge`].
    pub fn check(self, points: usize, columns: usize, bytes: usize) -> Result<(), SeriesTooLarge> {
        // Points of which no column is read are limited as those of one column are.
        let values = points.saturating_mul(columns.max(1));
        if values > self.values || bytes > self.bytes {
            Err(SeriesTooLarge(self))
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        catalog::{CatalogVersion, Column, Origin, SemanticCategory, TableIdentity},
        data::read::{ManySeriesPlan, SeriesSelection},
        people::rights::Rights,
        scalar::DataType,
    };

    fn column(name: &str, data_type: DataType, references: Option<&str>) -> Column {
        Column {
            id: None,
            name: name.to_owned(),
            description: None,
            label: None,
            unit: None,
            data_type,
            is_primary_key: false,
            is_nullable: true,
            is_unique: false,
            default: None,
            references: references.map(str::to_owned),
        }
    }

    fn catalog() -> Catalog {
        let raw = |name: &str, columns: Vec<Column>| Table {
            id: None,
            name: name.to_owned(),
            description: None,
            category: SemanticCategory::Raw,
            origin: Origin::Organization,
            columns: columns.into(),
            unique_together: Vec::new(),
            history: true,
            access: crate::catalog::TableAccess::default(),
        };
        let of_carrier = || column("carrier", DataType::String, Some("carrier"));
        let of_operation = || column("operation", DataType::Integer, Some("operation"));
        let value = || column("value", DataType::Float, None);
        let tables = vec![
            raw("trace", vec![value(), of_carrier()]),
            raw("signal", vec![of_carrier(), of_operation(), value()]),
        ];
        Catalog::new(CatalogVersion(1), tables)
    }

    #[test]
    fn the_only_reference_is_the_parents() {
        let plan = SeriesPlan::new(&catalog(), "trace", None, "p1").unwrap();
        assert_eq!(plan.owner.column.name, "carrier");
        assert_eq!(plan.owner.parent.name, "carrier");
        assert_eq!(plan.parent, KeyValue::Text("p1".to_owned()));
        let names: Vec<&str> = plan.columns().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["value"]);
    }

    #[test]
    fn among_several_references_one_must_be_named() {
        let plan = |column| SeriesPlan::new(&catalog(), "signal", column, "7");
        assert!(
            matches!(plan(None), Err(SeriesRefusal::Invalid(text)) if text.contains("carrier, operation"))
        );
        assert!(matches!(
            plan(Some("value")),
            Err(SeriesRefusal::Invalid(_))
        ));
        assert_eq!(
            plan(Some("operation")).unwrap().parent,
            KeyValue::Integer(7)
        );
    }

    #[test]
    fn a_series_is_limited_by_values_and_by_bytes() {
        let limits = SeriesLimits {
            values: 6,
            bytes: 10,
        };
        let refused = Err(SeriesTooLarge(limits));
        assert_eq!(limits.check(3, 2, 10), Ok(()));
        assert_eq!(limits.check(4, 2, 0), refused);
        assert_eq!(limits.check(3, 2, 11), refused);
        assert_eq!(limits.check(6, 0, 0), Ok(()));
        assert_eq!(limits.check(7, 0, 0), refused);
        assert_eq!(limits.check(usize::MAX, 2, 0), refused);
        assert_eq!(
            SeriesTooLarge(SERIES_LIMITS).to_string(),
            "the series has more than 2,000,000 values or 32 MiB: read parts of it with tools/query"
        );
    }

    #[test]
    fn who_may_not_read_the_parents_names_them_by_their_keys() {
        let rights = Rights::admin().narrowed_to(Some(&[TableIdentity::parse("trace")]));
        let view = Arc::new(catalog()).visible_to(&rights);
        let plan = SeriesPlan::new(&view, "trace", None, "p1").unwrap();
        assert!(plan.owner.is_parent_hidden);
        assert_eq!(plan.owner.parent.name, "carrier");
        let filtered = SeriesSelection {
            table: "trace".to_owned(),
            filters: [("name".to_owned(), "p".into())].into_iter().collect(),
            ..SeriesSelection::default()
        };
        match ManySeriesPlan::new(&view, filtered.clone()) {
            Err(SeriesRefusal::Invalid(text)) => assert!(!text.contains("carrier"), "{text}"),
            other => panic!("{other:?}"),
        }
        let all = SeriesSelection {
            filters: serde_json::Map::new(),
            ..filtered
        };
        assert!(ManySeriesPlan::new(&view, all).is_ok());
    }

    #[test]
    fn a_missing_table_and_a_missing_parent_differ() {
        let plan = |table, column, parent| SeriesPlan::new(&catalog(), table, column, parent);
        assert_eq!(plan("none", None, "a"), Err(SeriesRefusal::NoTable));
        assert!(matches!(
            plan("experiment", None, "a"),
            Err(SeriesRefusal::Invalid(_))
        ));
        assert_eq!(
            plan("signal", Some("operation"), "seven"),
            Err(SeriesRefusal::NoParent)
        );
    }
}
