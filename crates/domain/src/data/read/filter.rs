//! Filters: `column`, `reference__column`, with `__in`, `__gt`, `__gte`, `__lt`, `__lte`,
//! `__isnull` or `__contains` at the end.

use std::cmp::Ordering;

use serde_json::Value;

use super::{
    field::{Field, field},
    problem::unknown_column,
    target::ReadTarget,
};
use crate::{
    catalog::{Catalog, KeyedTable, PlatformTable, Table},
    data::write::{cell::Cell, quoted},
    scalar::{DataType, Scalar, Values},
};

/// Maximum number of references that a filter may follow.
const MAX_HOPS: usize = 5;

/// Reference that a filter follows.
#[derive(Clone, Debug, PartialEq)]
pub struct Hop {
    /// SQL name of the reference.
    pub sql_column: String,
    /// Referenced table.
    pub table: KeyedTable,
}

/// Test of a column's value.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// Equal to it.
    Equals(Scalar),
    /// One of these.
    In(Values),
    /// Greater.
    Greater(Scalar),
    /// Greater or equal.
    GreaterOrEqual(Scalar),
    /// Less.
    Less(Scalar),
    /// Less or equal.
    LessOrEqual(Scalar),
    /// Null, or not null.
    IsNull(bool),
    /// A text that contains this one, without regard to case.
    Contains(String),
}

impl Test {
    /// Returns whether a column's value passes the test. Null passes [`Self::IsNull`] only, and only
    /// texts contain something. Texts are ordered by their bytes.
    #[must_use]
    pub fn accepts(&self, value: Option<&Scalar>) -> bool {
        let order = |limit| value.and_then(|value| value.compare(limit));
        match self {
            Self::IsNull(wanted) => value.is_none() == *wanted,
            Self::Equals(wanted) => value == Some(wanted),
            Self::In(list) => {
                // Null is in no list, as in SQL.
                value.is_some() && (0..list.len()).any(|index| list.get(index).as_ref() == value)
            }
            Self::Greater(limit) => order(limit).is_some_and(Ordering::is_gt),
            Self::GreaterOrEqual(limit) => order(limit).is_some_and(Ordering::is_ge),
            Self::Less(limit) => order(limit).is_some_and(Ordering::is_lt),
            Self::LessOrEqual(limit) => order(limit).is_some_and(Ordering::is_le),
            Self::Contains(part) => matches!(
                value,
                Some(Scalar::Text(text)) if text.to_lowercase().contains(&part.to_lowercase())
            ),
        }
    }
}

/// Condition of a read.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// References to follow, in order.
    pub hops: Vec<Hop>,
    /// Column reached.
    pub field: Field,
    /// Test of its value.
    pub test: Test,
}

impl Condition {
    /// The condition that excludes hidden tables from the list of tables.
    pub(super) fn on_visible_tables(target: &ReadTarget, catalog: &Catalog) -> Option<Self> {
        if *target != ReadTarget::Platform(PlatformTable::Table) || catalog.hidden().is_empty() {
            return None;
        }
        let tables = catalog.tables().iter();
        Some(Self {
            hops: Vec::new(),
            field: target.field("name")?,
            test: Test::In(Values::Text(
                tables
                    .map(|table| Some(table.name.as_str().into()))
                    .collect(),
            )),
        })
    }

    pub(super) fn parse(
        target: &ReadTarget,
        catalog: &Catalog,
        key: &str,
        value: &Value,
    ) -> Result<Self, String> {
        let refused = |problem: String| format!("filter \"{}\": {problem}", quoted(key));
        // A column whose name contains a double underscore takes precedence over a path.
        let (hops, field, operator) = match resolve(target, catalog, key) {
            Some((hops, field)) => (hops, field, ""),
            None => key
                .rsplit_once("__")
                .filter(|(_, operator)| OPERATORS.contains(operator))
                .and_then(|(path, operator)| {
                    resolve(target, catalog, path).map(|(hops, field)| (hops, field, operator))
                })
                .ok_or_else(|| refused(unknown_column(target.name())))?,
        };
        let test = test(&field, operator, value).map_err(refused)?;
        Ok(Self { hops, field, test })
    }
}

const OPERATORS: [&str; 7] = ["in", "gt", "gte", "lt", "lte", "isnull", "contains"];

fn resolve(target: &ReadTarget, catalog: &Catalog, path: &str) -> Option<(Vec<Hop>, Field)> {
    match target {
        ReadTarget::Platform(_) => target.field(path).map(|field| (Vec::new(), field)),
        ReadTarget::Table(table) => resolve_in(table, catalog, path, MAX_HOPS),
    }
}

fn resolve_in(
    table: &Table,
    catalog: &Catalog,
    path: &str,
    hops_left: usize,
) -> Option<(Vec<Hop>, Field)> {
    if let Some(field) = field(table, path) {
        return Some((Vec::new(), field));
    }
    // References may form a cycle, along which a path could go on without end.
    if hops_left == 0 {
        return None;
    }
    // Names may contain double underscores, so every split of the path is tried.
    path.match_indices("__").find_map(|(at, separator)| {
        let (name, rest) = (path.get(..at)?, path.get(at + separator.len()..)?);
        let column = table.column(name)?;
        let next = catalog.keyed_table(column.references.as_deref()?)?;
        let (mut hops, field) = resolve_in(&next, catalog, rest, hops_left - 1)?;
        hops.insert(
            0,
            Hop {
                sql_column: column.sql_name().into_owned(),
                table: next,
            },
        );
        Some((hops, field))
    })
}

fn test(field: &Field, operator: &str, value: &Value) -> Result<Test, String> {
    let data_type = field.data_type;
    let scalar = |value: &Value| {
        if data_type == DataType::Json && operator != "isnull" {
            return Err("a json column can only be tested with __isnull".to_owned());
        }
        Cell::from(value.clone())
            .to_scalar(data_type)?
            .ok_or_else(|| "null is tested with __isnull".to_owned())
    };
    match operator {
        // In SQL nothing equals null, so that an equality would find no row.
        "" if value.is_null() => Ok(Test::IsNull(true)),
        "" => scalar(value).map(Test::Equals),
        "gt" => scalar(value).map(Test::Greater),
        "gte" => scalar(value).map(Test::GreaterOrEqual),
        "lt" => scalar(value).map(Test::Less),
        "lte" => scalar(value).map(Test::LessOrEqual),
        "in" => {
            let list = value.as_array().ok_or("must be a list of values")?;
            let mut values = Values::with_capacity(data_type, list.len());
            for value in list {
                values.push(scalar(value)?);
            }
            Ok(Test::In(values))
        }
        "isnull" => value
            .as_bool()
            .map(Test::IsNull)
            .ok_or_else(|| "must be true or false".to_owned()),
        "contains" if matches!(data_type, DataType::String | DataType::Text) => {
            match value.as_str() {
                Some(text) if !text.contains('\0') => Ok(Test::Contains(text.to_owned())),
                _ => Err("must be a string without NUL characters".to_owned()),
            }
        }
        "contains" => Err(format!(
            "__contains needs a string column, and this one is {data_type}"
        )),
        _ => Err("no such test".to_owned()),
    }
}
