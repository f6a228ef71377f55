//! Reading one series: one list of values per column, all of one length, for one parent row.

use std::{cmp::Reverse, collections::HashSet, sync::Arc};

use super::checked::{CheckedSeries, CheckedSeriesColumn, Content};
use crate::{
    catalog::{Catalog, Column, Table},
    data::write::{
        Order, SeriesValues, SeriesWrite,
        cell::{Cell, integer_to_float},
        problem::{Reason, missing_column, must_not_be_null, quoted},
        problem_list::{PointAddress, ProblemList},
        reference::{Reference, ReferenceReader, no_table},
    },
    refusal::ErrorCode,
    scalar::{DataType, Values},
};

/// Checks a series; `None` if its table or its parent's column is unknown.
pub(super) fn check(
    index: usize,
    series: &SeriesWrite,
    catalog: &Catalog,
    references: &mut ReferenceReader<'_>,
    problems: &mut ProblemList,
) -> Option<CheckedSeries> {
    let table = match raw_table(catalog, &series.table) {
        Ok(table) => Arc::clone(table),
        Err(message) => {
            problems.at_series(index, "table", || message);
            return None;
        }
    };
    let checker = SeriesChecker {
        index,
        table: &table,
        references,
        problems,
    };
    let read = checker.check(series);
    Some(CheckedSeries {
        index,
        parent_column: read.parent_column?,
        table,
        parent: read.parent,
        order: read.order,
        points: read.points,
        columns: read.columns,
    })
}

fn raw_table<'c>(catalog: &'c Catalog, name: &str) -> Result<&'c Arc<Table>, Reason> {
    match catalog.table(name) {
        Some(table) if table.is_raw() => Ok(table),
        Some(_) => Err(Reason::new(
            ErrorCode::WrongTableKind,
            format!("\"{name}\" is not a raw table; write its rows through \"tables\""),
        )),
        None => Err(no_table(name)),
    }
}

struct SeriesChecker<'a, 'c> {
    index: usize,
    table: &'a Table,
    references: &'a mut ReferenceReader<'c>,
    problems: &'a mut ProblemList,
}

struct ReadSeries {
    parent_column: Option<usize>,
    parent: Reference,
    order: Order,
    points: usize,
    columns: Vec<CheckedSeriesColumn>,
}

/// A column of the input that the table has.
#[derive(Clone, Copy)]
struct GivenColumn<'a> {
    column: &'a Column,
    /// Position among the series' columns.
    position: usize,
    values: &'a SeriesValues,
}

impl SeriesChecker<'_, '_> {
    fn check(mut self, series: &SeriesWrite) -> ReadSeries {
        let table = self.table;
        let parent_column = self.parent_column(series.parent_column.as_deref());
        let mut read = ReadSeries {
            parent_column,
            parent: self.parent(parent_column, &series.parent),
            order: Order::Positions,
            points: self.points(&series.columns),
            columns: Vec::with_capacity(series.columns.len()),
        };
        let order_column = table.order_column().map(|(index, _)| index);
        for (position, (name, values)) in series.columns.iter().enumerate() {
            let Some((index, column)) = table.column(name) else {
                let displayed = quoted(name);
                self.at(&format!("columns.{displayed}"), || {
                    Reason::new(
                        ErrorCode::UnknownColumn,
                        format!("\"{}\" has no column \"{displayed}\"", table.name),
                    )
                });
                continue;
            };
            let given = GivenColumn {
                column,
                position,
                values,
            };
            if Some(index) == parent_column {
                self.at(&format!("columns.{name}"), || {
                    Reason::new(
                        ErrorCode::ColumnNotWritable,
                        "the server fills in the parent; leave this column out",
                    )
                });
                continue;
            }
            if Some(index) == order_column {
                read.order = Order::Given(self.order(given));
                continue;
            }
            let content = match &column.references {
                Some(target) => Content::References(self.references_of(given, target)),
                None => Content::Values(self.values(given, column.is_nullable)),
            };
            read.columns.push(CheckedSeriesColumn {
                column: index,
                input: Some(position),
                content,
            });
        }
        self.complete(&mut read);
        read
    }

    fn at(&mut self, part: &str, reason: impl FnOnce() -> Reason) {
        self.problems.at_series(self.index, part, reason);
    }

    fn at_point(&mut self, given: GivenColumn<'_>, point: usize, reason: impl FnOnce() -> Reason) {
        let address = PointAddress {
            series: self.index,
            input: Some(given.position),
            point,
        };
        self.problems.at_point(address, &given.column.name, reason);
    }

    fn parent_column(&mut self, named: Option<&str>) -> Option<usize> {
        let table = self.table;
        let references: Vec<(usize, &Column)> = table.references().collect();
        match (named, references.as_slice()) {
            (Some(name), references) => {
                let found = references
                    .iter()
                    .find(|(_, column)| column.name == name || column.sql_name() == name);
                if found.is_none() {
                    self.at("parent_column", || {
                        Reason::new(
                            ErrorCode::UnknownColumn,
                            format!("\"{}\" has no reference \"{}\"", table.name, quoted(name)),
                        )
                    });
                }
                found.map(|(index, _)| *index)
            }
            (None, [(only, _)]) => Some(*only),
            (None, references) => {
                let listed: Vec<&str> = references
                    .iter()
                    .map(|(_, column)| column.name.as_str())
                    .collect();
                self.at("parent_column", || {
                    Reason::new(
                        ErrorCode::ParentAmbiguous,
                        format!(
                            "\"{}\" has several references; say which one points at the parent: {}",
                            table.name,
                            listed.join(", ")
                        ),
                    )
                });
                None
            }
        }
    }

    fn parent(&mut self, parent_column: Option<usize>, cell: &Cell) -> Reference {
        if matches!(cell, Cell::Absent | Cell::Null) {
            self.at("parent", || {
                Reason::new(
                    ErrorCode::MissingValue,
                    "a series needs a parent: an id, an \"@label\" or a lookup object",
                )
            });
            return Reference::None;
        }
        let target = parent_column
            .and_then(|index| self.table.columns.get(index))
            .and_then(|column| column.references.as_deref());
        let Some(target) = target else {
            return Reference::None;
        };
        self.references
            .read(cell, target, None)
            .unwrap_or_else(|message| {
                self.at("parent", || message);
                Reference::None
            })
    }

    /// The lists' common length, which the longest list sets: the problems do not depend on the order
    /// of the columns, which JSON leaves open.
    fn points(&mut self, columns: &[(String, SeriesValues)]) -> usize {
        let Some((longest, values)) = columns
            .iter()
            .max_by_key(|(name, values)| (values.len(), Reverse(name)))
        else {
            return 0;
        };
        let points = values.len();
        for (name, values) in columns {
            if values.len() != points {
                self.at(&format!("columns.{}", quoted(name)), || {
                    Reason::new(ErrorCode::LengthMismatch, format!(
                        "has {} values, but \"{}\" has {points}; all lists must have the same length",
                        values.len(),
                        quoted(longest)
                    ))
                });
            }
        }
        points
    }

    /// Reads a column's values. A value with a problem becomes null, so that it has only one.
    fn values(&mut self, given: GivenColumn<'_>, is_nullable: bool) -> Values {
        let packed = match (given.column.data_type, given.values) {
            (DataType::Integer, SeriesValues::Integers(values)) => Values::Integer(values.clone()),
            (DataType::Float, SeriesValues::Floats(values)) => Values::Float(values.clone()),
            (DataType::Float, SeriesValues::Integers(values)) => Values::Float(
                values
                    .iter()
                    .map(|value| value.map(integer_to_float))
                    .collect(),
            ),
            (data_type, values) => return self.cells(given, data_type, values, is_nullable),
        };
        if !is_nullable {
            for point in packed.nulls() {
                self.at_point(given, point, must_not_be_null);
            }
        }
        packed
    }

    fn cells(
        &mut self,
        given: GivenColumn<'_>,
        data_type: DataType,
        values: &SeriesValues,
        is_nullable: bool,
    ) -> Values {
        let mut read = Values::with_capacity(data_type, values.len());
        for point in 0..values.len() {
            match values.cell(point).to_scalar(data_type) {
                Ok(Some(scalar)) => read.push(scalar),
                Ok(None) => {
                    if !is_nullable {
                        self.at_point(given, point, must_not_be_null);
                    }
                    read.push_null();
                }
                Err(message) => {
                    self.at_point(given, point, || Reason::new(ErrorCode::WrongType, message));
                    read.push_null();
                }
            }
        }
        read
    }

    /// Reads the order column. Points without a valid place, already reported, are left out.
    fn order(&mut self, given: GivenColumn<'_>) -> Vec<i64> {
        let Values::Integer(places) = self.values(given, false) else {
            return Vec::new();
        };
        // Rising places, the usual case, need no set.
        let is_rising = places
            .windows(2)
            .all(|pair| matches!(pair, [Some(a), Some(b)] if a < b));
        if !is_rising {
            let mut seen = HashSet::with_capacity(places.len());
            for (point, place) in places.iter().enumerate() {
                if let Some(place) = place
                    && !seen.insert(*place)
                {
                    self.at_point(given, point, || {
                        Reason::new(
                            ErrorCode::DuplicateKey,
                            format!("the place {place} is given twice in this series"),
                        )
                    });
                }
            }
        }
        places.into_iter().flatten().collect()
    }

    fn references_of(&mut self, given: GivenColumn<'_>, target: &str) -> Vec<Reference> {
        let mut references = Vec::with_capacity(given.values.len());
        for point in 0..given.values.len() {
            let cell = given.values.cell(point);
            if *cell == Cell::Null && !given.column.is_nullable {
                self.at_point(given, point, must_not_be_null);
            }
            let reference = self.references.read(&cell, target, None);
            references.push(reference.unwrap_or_else(|message| {
                self.at_point(given, point, || message);
                Reference::None
            }));
        }
        references
    }

    /// Adds defaults, reports missing required columns, and makes sure that points have a column
    /// of values.
    fn complete(&mut self, read: &mut ReadSeries) {
        let table = self.table;
        let order_column = table.order_column().map(|(index, _)| index);
        for (index, column) in table.columns.iter().enumerate() {
            let given = read.columns.iter().any(|given| given.column == index);
            if given || Some(index) == read.parent_column || Some(index) == order_column {
                continue;
            }
            if let Some(default) = column.default_value() {
                let values = Values::repeat(column.data_type, &default, read.points);
                read.columns.push(CheckedSeriesColumn {
                    column: index,
                    input: None,
                    content: Content::Values(values),
                });
            } else if !column.is_nullable && read.parent_column.is_some() {
                self.at("columns", || missing_column(&column.name));
            }
        }
        let has_values = read
            .columns
            .iter()
            .any(|column| matches!(column.content, Content::Values(_)));
        if read.points > 0 && !has_values {
            let spare = table.columns.iter().enumerate().find(|(index, column)| {
                column.references.is_none() && Some(*index) != order_column
            });
            read.columns
                .extend(spare.map(|(index, column)| CheckedSeriesColumn {
                    column: index,
                    input: None,
                    content: Content::Values(Values::nulls_of(column.data_type, read.points)),
                }));
        }
    }
}
