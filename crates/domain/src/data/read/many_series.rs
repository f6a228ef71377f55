//! Column-wise reads of many series, and of whole tables.

use std::{collections::HashSet, sync::Arc, time::Duration};

use serde_json::{Map, Value};
use time::OffsetDateTime;

use super::{
    Condition, ReadTarget, SeriesLimits, SeriesRefusal, TableColumn,
    order::all_columns,
    problem::{named_twice, unknown_column},
    series::find_owner,
};
use crate::{
    catalog::{Catalog, ColumnRef, Owner, Table},
    data::write::quoted,
    numbers::grouped,
    refusal::{ErrorCode, RefusalKind, Refuse},
    scalar::{DataType, KeyValue, Values},
};

/// Requested series, not yet validated.
#[derive(Clone, Debug, Default)]
pub struct SeriesSelection {
    /// The raw table.
    pub table: String,
    /// The reference whose rows are the parents, where there are several.
    pub parent_column: Option<String>,
    /// Primary keys of the parents; those that meet the filters unless given.
    pub parents: Option<Vec<Value>>,
    /// Conditions by column of the parents' table.
    pub filters: Map<String, Value>,
    /// Columns of the series; all unless given.
    pub columns: Option<Vec<String>>,
    /// Parents and series as they stood then; as they are unless given.
    pub as_of: Option<OffsetDateTime>,
}

/// Rows whose series are read.
#[derive(Clone, Debug, PartialEq)]
pub enum SeriesParents {
    /// The rows of these keys, in this order.
    Keys(Vec<KeyValue>),
    /// The rows that meet all these conditions, by ascending key; none if the parents' table is hidden.
    Matching(Vec<Condition>),
}

/// Read of many series, validated against the catalog.
#[derive(Clone, Debug, PartialEq)]
pub struct ManySeriesPlan {
    /// The raw table, and its reference to the parents.
    pub owner: Owner,
    /// The parents.
    pub parents: SeriesParents,
    /// Columns of each series, in this order; never the reference to the parents.
    pub columns: Vec<ColumnRef>,
    /// Parents and series as they stood then; as they are unless given.
    pub as_of: Option<OffsetDateTime>,
}

impl ManySeriesPlan {
    /// Finds the table, the reference to the parents, the parents' keys and the columns.
    ///
    /// # Errors
    /// [`SeriesRefusal`]; as for one series, and for unknown columns and invalid filters.
    pub fn new(catalog: &Catalog, selection: SeriesSelection) -> Result<Self, SeriesRefusal> {
        let parent_column = selection.parent_column.as_deref();
        let owner = find_owner(catalog, &selection.table, parent_column)?;
        let columns = columns(&owner, selection.columns.as_deref())?;
        let parents = if let Some(keys) = selection.parents {
            SeriesParents::Keys(keys_of(&keys, owner.column.data_type)?)
        } else if owner.is_parent_hidden && !selection.filters.is_empty() {
            // A filter compares values of the parents: which series come back would reveal those of hidden rows.
            return Err(SeriesRefusal::Invalid(
                "filters: the points belong to rows of a table that you may not read; \
                 name them by their ids, as parents"
                    .to_owned(),
            ));
        } else {
            let target = ReadTarget::Table(Arc::clone(owner.parent.table()));
            let parsed = selection.filters.iter();
            let parsed = parsed.map(|(key, value)| Condition::parse(&target, catalog, key, value));
            SeriesParents::Matching(all_or_problems(parsed)?)
        };
        Ok(Self {
            owner,
            parents,
            columns,
            as_of: selection.as_of,
        })
    }

    /// The tables that are read.
    #[must_use]
    pub fn tables(&self) -> Vec<&Table> {
        let mut tables = vec![&*self.owner.table];
        if !self.owner.is_parent_hidden {
            tables.push(&**self.owner.parent.table());
        }
        tables
    }

    /// The conditions on the parents.
    #[must_use]
    pub fn conditions(&self) -> &[Condition] {
        match &self.parents {
            SeriesParents::Keys(_) => &[],
            SeriesParents::Matching(conditions) => conditions,
        }
    }

    /// The columns of all series as one table: the parent's key first.
    #[must_use]
    pub fn table_columns(&self) -> Vec<TableColumn> {
        std::iter::once(&self.owner.column)
            .chain(&self.columns)
            .map(|column| TableColumn::from(&**column))
            .collect()
    }
}

fn columns(owner: &Owner, names: Option<&[String]>) -> Result<Vec<ColumnRef>, SeriesRefusal> {
    let table = &owner.table;
    let Some(names) = names else {
        let all = table.columns.iter();
        return Ok(all.filter(|it| **it != owner.column).cloned().collect());
    };
    let mut seen = HashSet::new();
    let found = names.iter().map(|name| {
        if !seen.insert(name) {
            return Err(named_twice("columns", name));
        }
        table.column(name).cloned().ok_or_else(|| {
            let problem = unknown_column(&table.name);
            format!("columns \"{}\": {problem}", quoted(name))
        })
    });
    let mut found = all_or_problems(found)?;
    // Naming it is no mistake, but every form of the result has the parent apart from the columns.
    found.retain(|column| *column != owner.column);
    Ok(found)
}

fn all_or_problems<T>(
    results: impl Iterator<Item = Result<T, String>>,
) -> Result<Vec<T>, SeriesRefusal> {
    // Not `collect` into a `Result`, which would stop at the first problem.
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    for result in results {
        match result {
            Ok(value) => found.push(value),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() {
        Ok(found)
    } else {
        Err(SeriesRefusal::Invalid(problems.join("; ")))
    }
}

fn keys_of(keys: &[Value], key_type: DataType) -> Result<Vec<KeyValue>, SeriesRefusal> {
    let mut seen = HashSet::with_capacity(keys.len());
    let parsed = keys.iter().map(|given| {
        let text = || match given {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let found = match given {
            Value::String(text) => KeyValue::parse(text, key_type),
            // Text keys stay texts: the number 7 is not the key "7".
            Value::Number(number) if key_type == DataType::Integer => {
                KeyValue::parse(&number.to_string(), key_type)
            }
            _ => None,
        };
        let found = found.ok_or_else(|| SeriesRefusal::UnknownParent(quoted(&text())))?;
        // By key rather than by text: `7` and `"7"`, or a UUID in capitals, name one parent.
        if seen.insert(found.clone()) {
            Ok(found)
        } else {
            Err(SeriesRefusal::Invalid(named_twice("parents", &text())))
        }
    });
    parsed.collect()
}

/// Table of the organization that is read as a whole.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportPlan {
    /// The table.
    pub table: Arc<Table>,
    /// Its rows as they stood then; as they are unless given.
    pub as_of: Option<OffsetDateTime>,
}

impl ExportPlan {
    /// Finds the table; `None` if the organization has none of that name.
    #[must_use]
    pub fn new(catalog: &Catalog, name: &str, as_of: Option<OffsetDateTime>) -> Option<Self> {
        let table = Arc::clone(catalog.table(name)?);
        Some(Self { table, as_of })
    }

    /// Names in reads, SQL names and types of all columns, system columns of rows included.
    #[must_use]
    pub fn columns(&self) -> Vec<super::ReadColumn> {
        all_columns(&ReadTarget::Table(Arc::clone(&self.table)))
    }

    /// All columns, system columns of rows included.
    #[must_use]
    pub fn table_columns(&self) -> Vec<TableColumn> {
        let own = self.table.columns.iter();
        let own = own.map(|column| TableColumn::from(&**column));
        let system = self.table.system_columns().iter();
        // Those of a raw table are the same for all points of a series and would multiply the file.
        let system = system.filter(|_| !self.table.is_raw());
        let system = system.map(|column| TableColumn::new(column.name, column.data_type));
        own.chain(system).collect()
    }
}

/// Rows of a table that is read in parts.
#[derive(Clone, Debug, PartialEq)]
pub struct TablePart {
    /// The row that owns the points, in a read of series.
    pub parent: Option<KeyValue>,
    /// A column of values for each column of the plan, all of the same length.
    pub columns: Vec<Values>,
    /// Number of rows.
    pub rows: usize,
    /// Stored size of the values in bytes; 0 for a store that has no stored form.
    pub bytes: usize,
}

/// Error: several series exceed the limits of one read as JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the series have more than {} values or {} MiB: name fewer parents or columns, or accept an Arrow stream, \
     Parquet or CSV",
    grouped(.0.values),
    .0.bytes >> 20
)]
pub struct ManySeriesTooLarge(pub SeriesLimits);

impl Refuse for ManySeriesTooLarge {
    fn code(&self) -> ErrorCode {
        ErrorCode::ResultTooLarge
    }
}

/// A table that was not sent within this time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the table was not sent within {} s (LABDATA_EXPORT_SECONDS): read it faster, or less of it",
    .0.as_secs()
)]
pub struct ExportTimedOut(pub Duration);

impl Refuse for ExportTimedOut {
    fn code(&self) -> ErrorCode {
        ErrorCode::TimedOut
    }

    fn kind(&self) -> RefusalKind {
        RefusalKind::Unavailable
    }

    fn retry_after_seconds(&self) -> Option<u32> {
        Some(60)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::catalog::{CatalogVersion, Column, Origin, SemanticCategory};

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

    fn plan(change: impl FnOnce(&mut SeriesSelection)) -> Result<ManySeriesPlan, SeriesRefusal> {
        let table = Table {
            id: None,
            name: "signal".to_owned(),
            description: None,
            category: SemanticCategory::Raw,
            origin: Origin::Organization,
            columns: vec![
                column("x", DataType::Float, None),
                column("carrier", DataType::String, Some("carrier")),
                column("operation", DataType::Integer, Some("operation")),
                column("y", DataType::Float, None),
            ]
            .into(),
            unique_together: Vec::new(),
            history: true,
            access: crate::catalog::TableAccess::default(),
        };
        let catalog = Catalog::new(CatalogVersion(1), vec![table]);
        let mut selection = SeriesSelection {
            table: "signal".to_owned(),
            parent_column: Some("operation".to_owned()),
            ..SeriesSelection::default()
        };
        change(&mut selection);
        ManySeriesPlan::new(&catalog, selection)
    }

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn the_parents_key_is_the_first_column_and_never_repeated() {
        let displayed = |plan: ManySeriesPlan| {
            let columns = plan.table_columns().into_iter();
            columns.map(|it| it.name).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(displayed(plan(|_| ()).unwrap()), "operation x carrier y");
        let some = plan(|it| it.columns = Some(names(&["y", "operation", "x"])));
        assert_eq!(displayed(some.unwrap()), "operation y x");
    }

    #[test]
    fn wrong_columns_and_filters_are_reported_together() {
        let refused = plan(|it| it.columns = Some(names(&["z", "x", "x"]))).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "columns \"z\": \"signal\" has no such column; columns \"x\": named twice"
        );
        let refused = plan(|it| {
            it.filters.insert("nme".to_owned(), json!("a"));
            it.filters.insert("name__gt".to_owned(), json!(1));
        });
        let refused = refused.unwrap_err().to_string();
        assert!(
            refused.contains("\"nme\"") && refused.contains("\"name__gt\""),
            "{refused}"
        );
    }

    #[test]
    fn parents_are_keys_of_their_table() {
        let keys = |list: Value| plan(|it| it.parents = list.as_array().cloned());
        assert_eq!(
            keys(json!([9, "8", 7])).unwrap().parents,
            SeriesParents::Keys([9, 8, 7].map(KeyValue::Integer).to_vec())
        );
        assert_eq!(
            keys(json!([7, "8", "7"])).unwrap_err().to_string(),
            "parents \"7\": named twice"
        );
        for (wrong, named) in [
            (json!([7, "seven"]), "seven"),
            (json!([1.5]), "1.5"),
            (json!([null]), "null"),
            (json!([{"id": 7}]), "{\"id\":7}"),
        ] {
            let refused = keys(wrong).unwrap_err();
            assert_eq!(refused, SeriesRefusal::UnknownParent(named.to_owned()));
        }
        let all = plan(|_| ()).unwrap();
        assert_eq!(all.parents, SeriesParents::Matching(Vec::new()));
    }
}
