//! Locations of problems that the store reports without one.

use std::collections::{HashMap, hash_map::Entry};

use super::{StepColumn, TableStep, WritePlan};
use crate::{
    catalog::ViolatedKey,
    data::write::{Problem, Reason, RowNames},
    refusal::ErrorCode,
    scalar::{ComparableValue, Scalar, Values},
    timestamp,
};

impl WritePlan {
    /// Adds the location to problems that the store reports without one: the line of an imported file where
    /// a value is not unique, and the path of a value that is too long for an index. Other problems, and
    /// those of uniqueness in other writes, stay as they are.
    #[must_use]
    pub fn locate_problems(&self, problems: Vec<Problem>) -> Vec<Problem> {
        let is_too_large =
            |problem: &Problem| problem.path.is_none() && problem.code == ErrorCode::ValueTooLarge;
        if problems.iter().any(is_too_large)
            && let Some(problem) = self.too_long_for_an_index()
        {
            return vec![problem];
        }
        // A list that is cut already ends with a count of the rest.
        if problems.iter().all(|problem| problem.repeated.is_none()) {
            return problems;
        }
        let located = problems.into_iter().flat_map(|problem| {
            let lines = problem.repeated.as_deref().and_then(|key| {
                let of_file = |step: &&TableStep| {
                    step.table.sql_name() == key.table
                        && matches!(step.row_names, RowNames::Lines(_))
                };
                let step = self.tables.iter().find(of_file)?;
                step.lines_of(key, &problem.message)
            });
            lines.unwrap_or_else(|| vec![problem])
        });
        Problem::first_of(located.collect())
    }
}

impl TableStep {
    /// Problems of the rows whose values in the columns of a key occur more than once; `None` if no
    /// row has the repeated values.
    fn lines_of(&self, key: &ViolatedKey, message: &str) -> Option<Vec<Problem>> {
        let columns: Vec<(&str, &Values)> = key
            .columns
            .split(", ")
            .map(|name| self.values_of(name.trim_matches('"')))
            .collect::<Option<_>>()?;
        let path = |row: usize| match columns.as_slice() {
            [(name, _)] => format!("{}.{name}", self.path(row)),
            _ => self.path(row),
        };
        let mut problems = Vec::new();
        let mut first_rows: HashMap<Vec<ComparableValue<'_>>, usize> = HashMap::new();
        for row in 0..self.len {
            let values = columns.iter().map(|(_, values)| values.comparable(row));
            // Null is equal to nothing.
            let Some(values) = values.collect::<Option<Vec<_>>>() else {
                continue;
            };
            match first_rows.entry(values) {
                Entry::Vacant(entry) => {
                    entry.insert(row);
                }
                Entry::Occupied(first) => {
                    let first = self.row_names.row(self.address(*first.get()));
                    let message = format!("must be unique, but {first} has the same value");
                    let reason = Reason::new(ErrorCode::UniqueViolation, message);
                    problems.push(Problem::at(path(row), reason));
                }
            }
        }
        let has_values = |row: &usize| has_values(&columns, *row, &key.values);
        if problems.is_empty() {
            let row = (0..self.len).find(has_values)?;
            let reason = Reason::new(ErrorCode::UniqueViolation, message);
            problems.push(Problem::at(path(row), reason));
        }
        Some(problems)
    }

    /// The name of the column of that name in SQL, with the values that the step gives for it.
    fn values_of(&self, sql_name: &str) -> Option<(&str, &Values)> {
        let key = self.table.key();
        if key.sql_name() == sql_name
            && let Some(keys) = self.inserted_keys()
        {
            return Some((&key.name, keys));
        }
        let mut given = self.key.iter().chain(&self.columns);
        let StepColumn { column, values, .. } =
            given.find(|given| given.column.sql_name() == sql_name)?;
        Some((&column.name, values))
    }
}

/// Returns whether a row has the values that a store names, which are separated by commas.
fn has_values(columns: &[(&str, &Values)], row: usize, named: &str) -> bool {
    let values: Vec<Option<Scalar>> = columns.iter().map(|(_, values)| values.get(row)).collect();
    let parts: Vec<&str> = if columns.len() == 1 {
        vec![named]
    } else {
        named.split(", ").collect()
    };
    if parts.len() == values.len() {
        let mut pairs = values.iter().zip(parts);
        return pairs
            .all(|(value, part)| value.as_ref().is_some_and(|value| is_named(value, part)));
    }
    // A text may hold the separator itself.
    let texts = values.iter().map(|value| match value {
        Some(Scalar::Text(text)) => Some(text.clone()),
        value => value.clone()?.into_key().map(|key| key.to_string()),
    });
    let texts: Option<Vec<String>> = texts.collect();
    texts.is_some_and(|texts| texts.join(", ") == named)
}

/// Returns whether a store names a value so.
fn is_named(value: &Scalar, named: &str) -> bool {
    match value {
        Scalar::Text(text) => text == named,
        Scalar::Integer(number) => named.parse() == Ok(*number),
        // Stores may write a number in several ways.
        Scalar::Float(number) => named.parse() == Ok(*number),
        Scalar::Boolean(flag) => {
            matches!((flag, named), (true, "t" | "true") | (false, "f" | "false"))
        }
        Scalar::Date(date) => timestamp::render_date(*date) == named,
        Scalar::Uuid(id) => id.to_string() == named,
        Scalar::Datetime(at) => {
            // PostgreSQL: `2026-03-01 11:00:00+00`.
            let hours = named
                .get(named.len().saturating_sub(3)..)
                .unwrap_or_default();
            let minutes = if hours.starts_with(['+', '-']) {
                ":00"
            } else {
                ""
            };
            let named = format!("{}{minutes}", named.replacen(' ', "T", 1));
            timestamp::parse(&named) == Some(*at)
        }
        Scalar::Json(_) => false,
    }
}
