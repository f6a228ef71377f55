//! Reading one series: one list of values per column, all of one length, for one parent row.

use std::{cmp::Reverse, collections::HashSet, sync::Arc};

use super::checked::{CheckedSeries, CheckedSeriesColumn, Content};
use crate::{
    catalog::{Catalog, ColumnRef, HIDDEN_TABLE, Owner, Table},
    data::write::{
        Order, SeriesValues, SeriesWrite,
        cell::{Cell, integer_to_float},
        problem::{Reason, missing_column, must_not_be_null, no_column, quoted},
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
        Ok(table) => table,
        Err(message) => {
            problems.at_series(index, "table", || message);
            return None;
        }
    };
    let checker = SeriesChecker {
        index,
        table,
        references,
        problems,
    };
    let read = checker.check(series);
    Some(CheckedSeries {
        index,
        owner: read.owner?,
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
    table: &'a Arc<Table>,
    references: &'a mut ReferenceReader<'c>,
    problems: &'a mut ProblemList,
}

struct ReadSeries {
    owner: Option<Owner>,
    parent: Reference,
    order: Order,
    points: usize,
    columns: Vec<CheckedSeriesColumn>,
}

/// A column of the input that the table has.
#[derive(Clone, Copy)]
struct GivenColumn<'a> {
    column: &'a ColumnRef,
    /// Position among the series' columns.
    position: usize,
    values: &'a SeriesValues,
}

impl<'a> SeriesChecker<'a, '_> {
    fn check(mut self, series: &SeriesWrite) -> ReadSeries {
        let table = self.table;
        let owner = self.owner(series.parent_column.as_deref());
        let parent_column = owner.as_ref().map(|owner| owner.column.clone());
        let mut read = ReadSeries {
            parent: self.parent(owner.as_ref(), &series.parent),
            owner,
            order: Order::Positions,
            points: self.points(&series.columns),
            columns: Vec::with_capacity(series.columns.len()),
        };
        let order_column = table.order_column();
        for (position, (name, values)) in series.columns.iter().enumerate() {
            let Some(column) = table.column(name) else {
                self.at(&format!("columns.{}", quoted(name)), || {
                    no_column(&table.name, name)
                });
                continue;
            };
            let given = GivenColumn {
                column,
                position,
                values,
            };
            if Some(column) == parent_column.as_ref() {
                self.at(&format!("columns.{name}"), || {
                    Reason::new(
                        ErrorCode::ColumnNotWritable,
                        "the server fills in the parent; leave this column out",
                    )
                });
                continue;
            }
            if Some(column) == order_column {
                read.order = Order::Given(self.order(given));
                continue;
            }
            let content = match &column.references {
                Some(target) => Content::References(self.references_of(given, target)),
                None => Content::Values(self.values(given, column.is_nullable).into()),
            };
            read.columns.push(CheckedSeriesColumn {
                column: column.clone(),
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

    /// The reference to the parent, and the parent's table.
    fn owner(&mut self, named: Option<&str>) -> Option<Owner> {
        let (column, target) = match self.parent_column(named) {
            Ok(found) => found,
            Err(reason) => {
                self.at("parent_column", || reason);
                return None;
            }
        };
        if target == HIDDEN_TABLE {
            self.at("parent", || {
                Reason::new(
                    ErrorCode::UnknownTable,
                    "the points belong to rows of a table that you may not read, so that you can write none",
                )
            });
            return None;
        }
        let found = self.references.table(target).map(|parent| Owner {
            table: Arc::clone(self.table),
            column: column.clone(),
            parent,
            is_parent_hidden: false,
        });
        match found {
            Ok(owner) => Some(owner),
            Err(reason) => {
                self.at("parent_column", || reason);
                None
            }
        }
    }

    /// The reference to the parent, with the name of the referenced table.
    fn parent_column(&self, named: Option<&str>) -> Result<(&'a ColumnRef, &'a str), Reason> {
        let table = self.table;
        let references: Vec<(&ColumnRef, &str)> = table.references().collect();
        match (named, references.as_slice()) {
            (Some(name), references) => references
                .iter()
                .find(|(column, _)| column.name == name || column.sql_name() == name)
                .copied()
                .ok_or_else(|| {
                    Reason::new(
                        ErrorCode::UnknownColumn,
                        format!("\"{}\" has no reference \"{}\"", table.name, quoted(name)),
                    )
                }),
            (None, [only]) => Ok(*only),
            (None, references) => {
                let listed: Vec<&str> = references
                    .iter()
                    .map(|(column, _)| column.name.as_str())
                    .collect();
                Err(Reason::new(
                    ErrorCode::ParentAmbiguous,
                    format!(
                        "\"{}\" has several references; say which one points at the parent: {}",
                        table.name,
                        listed.join(", ")
                    ),
                ))
            }
        }
    }

    fn parent(&mut self, owner: Option<&Owner>, cell: &Cell) -> Reference {
        if matches!(cell, Cell::Absent | Cell::Null) {
            self.at("parent", || {
                Reason::new(
                    ErrorCode::MissingValue,
                    "a series needs a parent: an id, an \"@label\" or a lookup object",
                )
            });
            return Reference::None;
        }
        // Reported as a problem of `parent_column`.
        let Some(owner) = owner else {
            return Reference::None;
        };
        self.references
            .read(cell, &owner.parent.name, None)
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
            // Among equals by name: the message must not depend on the order of the columns.
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
        // Packed lists of the right type need no check per value, and most series are such lists.
        let packed = match (given.column.data_type, given.values) {
            (DataType::Integer, SeriesValues::Integers(values)) => Values::Integer(values.clone()),
            (DataType::Float, SeriesValues::Floats(values)) => Values::Float(values.clone()),
            // JavaScript writes 1.0 as 1, so a list of floats may come with whole numbers only.
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
                    // The null in its place leaves later points at their indexes. The problem refuses the write.
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
        let order_column = table.order_column();
        let parent_column = read.owner.as_ref().map(|owner| owner.column.clone());
        for column in &table.columns {
            let given = read.columns.iter().any(|given| given.column == *column);
            if given || Some(column) == parent_column.as_ref() || Some(column) == order_column {
                continue;
            }
            if let Some(default) = column.default_value() {
                let values = Values::repeat(column.data_type, &default, read.points);
                read.columns.push(CheckedSeriesColumn {
                    column: column.clone(),
                    input: None,
                    content: Content::Values(values.into()),
                });
            } else if !column.is_nullable && parent_column.is_some() {
                // Not where the parent's column is unknown: the missing column may be that one.
                self.at("columns", || missing_column(&column.name));
            }
        }
        let has_values = read
            .columns
            .iter()
            .any(|column| matches!(column.content, Content::Values(_)));
        if read.points > 0 && !has_values {
            // The number of points is the length of an array, so one is stored.
            let spare = table
                .columns
                .iter()
                .find(|column| column.references.is_none() && Some(*column) != order_column);
            read.columns.extend(spare.map(|column| CheckedSeriesColumn {
                column: column.clone(),
                input: None,
                content: Content::Values(Values::nulls_of(column.data_type, read.points).into()),
            }));
        }
    }
}
