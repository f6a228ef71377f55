//! Series: one list of values per column, all of one length, for one parent row.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use super::{
    Answers, Order, Problem, Questions, RowAddress, RowKey, SeriesColumn, SeriesStep, SeriesValues,
    SeriesWrite, TableStep,
    cell::{Cell, integer_to_float, scalar_of_json},
    check::known_insert_key,
    problem_list::{Place, ProblemList},
    reference::{Reference, ReferenceReader, resolve},
};
use crate::{
    catalog::{Catalog, Column, Table},
    scalar::{DataType, Values},
};

/// A series whose values are read.
pub(super) struct CheckedSeries {
    index: usize,
    table: Arc<Table>,
    parent_column: usize,
    parent: Reference,
    order: Order,
    points: usize,
    columns: Vec<(usize, usize, Content)>,
}

enum Content {
    Values(Values),
    References(Vec<Reference>),
}

struct SeriesChecker<'a, 'c> {
    index: usize,
    references: &'a mut ReferenceReader<'c>,
    problems: &'a mut ProblemList,
}

pub(super) fn check_series(
    index: usize,
    series: SeriesWrite,
    catalog: &Catalog,
    references: &mut ReferenceReader<'_>,
    problems: &mut ProblemList,
) -> Option<CheckedSeries> {
    let mut checker = SeriesChecker {
        index,
        references,
        problems,
    };
    let table = checker.raw_table(catalog, &series.table)?;
    let parent_column = checker.parent_column(&table, series.parent_column.as_deref());
    let parent = checker.parent(&table, parent_column, series.parent);
    let points = checker.points(&series.columns);
    let mut order = Order::Positions;
    let mut columns: Vec<(usize, usize, Content)> = Vec::with_capacity(series.columns.len());
    for (input, (name, values)) in series.columns.into_iter().enumerate() {
        let Some((column_index, column)) = table.column(&name) else {
            let shown: String = name.chars().take(100).collect();
            checker.at(
                &format!("columns.{shown}"),
                format!("\"{}\" has no column \"{shown}\"", table.name),
            );
            continue;
        };
        if Some(column_index) == parent_column {
            checker.at(
                &format!("columns.{name}"),
                "the server fills in the parent; leave this column out".to_owned(),
            );
        } else if let Some(target) = &column.references {
            columns.push((
                column_index,
                input,
                Content::References(checker.references_of(column, target, input, values)),
            ));
        } else if table
            .order_column()
            .is_some_and(|(order, _)| order == column_index)
        {
            order = Order::Given(checker.order(column, input, values));
        } else {
            columns.push((
                column_index,
                input,
                Content::Values(checker.values(column, input, values)),
            ));
        }
    }
    checker.complete(&table, parent_column, points, &mut columns);
    Some(CheckedSeries {
        index,
        parent_column: parent_column?,
        table,
        parent,
        order,
        points,
        columns,
    })
}

impl SeriesChecker<'_, '_> {
    fn at(&mut self, part: &str, message: String) {
        let index = self.index;
        self.problems.add(Place::series(index), || {
            Problem::at(format!("series[{index}].{part}"), message)
        });
    }

    fn at_point(
        &mut self,
        input: usize,
        point: usize,
        column: &str,
        message: impl FnOnce() -> String,
    ) {
        let index = self.index;
        self.problems.add(Place::point(index, input, point), || {
            Problem::at(
                format!("series[{index}].columns.{column}[{point}]"),
                message(),
            )
        });
    }

    fn raw_table(&mut self, catalog: &Catalog, name: &str) -> Option<Arc<Table>> {
        let table = catalog.table(name);
        if let Some(table) = table.filter(|table| table.is_raw()) {
            return Some(Arc::clone(table));
        }
        let shown: String = name.chars().take(100).collect();
        let message = if table.is_some() {
            format!("\"{shown}\" is not a raw table; write its rows through \"tables\"")
        } else {
            format!("there is no table \"{shown}\"")
        };
        self.at("table", message);
        None
    }

    fn parent_column(&mut self, table: &Table, named: Option<&str>) -> Option<usize> {
        let references: Vec<(usize, &Column)> = table.references().collect();
        match named {
            Some(name) => {
                let found = references
                    .iter()
                    .find(|(_, column)| column.name == name || column.sql_name() == name);
                if found.is_none() {
                    let shown: String = name.chars().take(100).collect();
                    self.at(
                        "parent_column",
                        format!("\"{}\" has no reference \"{shown}\"", table.name),
                    );
                }
                found.map(|(index, _)| *index)
            }
            None if references.len() > 1 => {
                let listed: Vec<&str> = references
                    .iter()
                    .map(|(_, column)| column.name.as_str())
                    .collect();
                self.at(
                    "parent_column",
                    format!(
                        "\"{}\" has several references; say which one points at the parent: {}",
                        table.name,
                        listed.join(", ")
                    ),
                );
                None
            }
            None => references.first().map(|(index, _)| *index),
        }
    }

    fn parent(&mut self, table: &Table, parent_column: Option<usize>, cell: Cell) -> Reference {
        let target = parent_column
            .and_then(|index| table.columns.get(index))
            .and_then(|column| column.references.as_deref());
        if matches!(cell, Cell::Absent | Cell::Null) {
            self.at(
                "parent",
                "a series needs a parent: an id, an \"@label\" or a lookup object".to_owned(),
            );
            return Reference::None;
        }
        let Some(target) = target else {
            return Reference::None;
        };
        self.references
            .read(cell, target, None)
            .unwrap_or_else(|message| {
                self.at("parent", message);
                Reference::None
            })
    }

    /// The lists' common length; the first list sets it.
    fn points(&mut self, columns: &[(String, SeriesValues)]) -> usize {
        let Some((first, values)) = columns.first() else {
            return 0;
        };
        let points = values.len();
        for (name, values) in columns {
            if values.len() != points {
                let shown: String = name.chars().take(100).collect();
                self.at(
                    &format!("columns.{shown}"),
                    format!("has {} values, but \"{}\" has {points}; all lists must have the same length", values.len(), first.chars().take(100).collect::<String>()),
                );
            }
        }
        points
    }

    fn values(&mut self, column: &Column, input: usize, values: SeriesValues) -> Values {
        let read = match (column.data_type, values) {
            (DataType::Integer, SeriesValues::Integers(values)) => Values::Integer(values),
            (DataType::Float, SeriesValues::Floats(values)) => Values::Float(values),
            (DataType::Float, SeriesValues::Integers(values)) => Values::Float(
                values
                    .into_iter()
                    .map(|value| value.map(integer_to_float))
                    .collect(),
            ),
            (data_type, values) => {
                let mut read = Values::with_capacity(data_type, values.len());
                for (point, cell) in values.into_cells().into_iter().enumerate() {
                    match cell.into_scalar(data_type) {
                        Ok(Some(scalar)) => read.push(scalar),
                        Ok(None) => read.push_null(),
                        Err(message) => {
                            self.at_point(input, point, &column.name, || message);
                            // Not null, which would be a second problem of the same value.
                            read.push(placeholder(data_type));
                        }
                    }
                }
                read
            }
        };
        if !column.is_nullable {
            self.refuse_nulls(column, input, &read);
        }
        read
    }

    fn refuse_nulls(&mut self, column: &Column, input: usize, values: &Values) {
        crate::for_each_values!(values, vector => {
            for (point, value) in vector.iter().enumerate() {
                if value.is_none() {
                    self.at_point(input, point, &column.name, || "must not be null".to_owned());
                }
            }
        });
    }

    fn order(&mut self, column: &Column, input: usize, values: SeriesValues) -> Vec<i64> {
        let required = Column {
            is_nullable: false,
            ..column.clone()
        };
        let Values::Integer(places) = self.values(&required, input, values) else {
            return Vec::new();
        };
        let places: Vec<i64> = places.into_iter().map(Option::unwrap_or_default).collect();
        // Rising places, the usual case, need no set.
        if places
            .windows(2)
            .all(|pair| matches!(pair, [a, b] if a < b))
        {
            return places;
        }
        let mut seen = HashSet::with_capacity(places.len());
        for (point, place) in places.iter().enumerate() {
            if !seen.insert(*place) {
                self.at_point(input, point, &column.name, || {
                    format!("the place {place} is given twice in this series")
                });
            }
        }
        places
    }

    fn references_of(
        &mut self,
        column: &Column,
        target: &str,
        input: usize,
        values: SeriesValues,
    ) -> Vec<Reference> {
        let mut references = Vec::with_capacity(values.len());
        for (point, cell) in values.into_cells().into_iter().enumerate() {
            if cell == Cell::Null && !column.is_nullable {
                self.at_point(input, point, &column.name, || "must not be null".to_owned());
            }
            let reference = self
                .references
                .read(cell, target, None)
                .unwrap_or_else(|message| {
                    self.at_point(input, point, &column.name, || message);
                    Reference::None
                });
            references.push(reference);
        }
        references
    }

    /// Fills in defaults, reports required columns that are missing, and makes sure that points
    /// have a column to be in.
    fn complete(
        &mut self,
        table: &Table,
        parent_column: Option<usize>,
        points: usize,
        columns: &mut Vec<(usize, usize, Content)>,
    ) {
        let order_column = table.order_column().map(|(index, _)| index);
        for (index, column) in table.columns.iter().enumerate() {
            let given = columns.iter().any(|(given, _, _)| *given == index);
            if given || Some(index) == parent_column || Some(index) == order_column {
                continue;
            }
            if let Some(default) = column
                .default
                .as_ref()
                .and_then(|value| scalar_of_json(value, column.data_type))
            {
                let mut values = Values::with_capacity(column.data_type, points);
                (0..points).for_each(|_| values.push(default.clone()));
                columns.push((index, usize::MAX, Content::Values(values)));
            } else if !column.is_nullable && parent_column.is_some() {
                self.at(
                    "columns",
                    format!("the required column \"{}\" is missing", column.name),
                );
            }
        }
        let has_values = columns
            .iter()
            .any(|(_, _, content)| matches!(content, Content::Values(_)));
        if points > 0 && !has_values {
            let spare = table.columns.iter().enumerate().find(|(index, column)| {
                column.references.is_none() && Some(*index) != order_column
            });
            if let Some((index, column)) = spare {
                let mut values = Values::with_capacity(column.data_type, points);
                (0..points).for_each(|_| values.push_null());
                columns.push((index, usize::MAX, Content::Values(values)));
            }
        }
    }
}

/// Any value of a type.
fn placeholder(data_type: DataType) -> crate::scalar::Scalar {
    use crate::scalar::Scalar;
    match data_type {
        DataType::String | DataType::Text => Scalar::Text(String::new()),
        DataType::Integer => Scalar::Integer(0),
        DataType::Float => Scalar::Float(0.0),
        DataType::Boolean => Scalar::Boolean(false),
        DataType::Datetime => Scalar::Datetime(time::OffsetDateTime::UNIX_EPOCH),
        DataType::Date => Scalar::Date(time::OffsetDateTime::UNIX_EPOCH.date()),
        DataType::Uuid => Scalar::Uuid(uuid::Uuid::nil()),
        DataType::Json => Scalar::Json(serde_json::Value::Null),
    }
}

/// Resolves parents and references, and refuses a second series for one parent.
pub(super) fn plan_series(
    series: Vec<CheckedSeries>,
    questions: &Questions,
    answers: &Answers,
    steps: &[TableStep],
    problems: &mut ProblemList,
) -> Vec<SeriesStep> {
    let mut seen: HashMap<(String, usize, RowKey), usize> = HashMap::new();
    let mut planned = Vec::with_capacity(series.len());
    let known_key = |address: RowAddress| known_insert_key(steps, address);
    for checked in series {
        let CheckedSeries {
            index,
            table,
            parent_column,
            parent,
            order,
            points,
            columns,
        } = checked;
        let parent = match resolve(&parent, questions, answers, known_key) {
            Ok(Some(parent)) => parent,
            // Reported when it was read.
            Ok(None) => continue,
            Err(message) => {
                problems.add(Place::series(index), || {
                    Problem::at(format!("series[{index}].parent"), message)
                });
                continue;
            }
        };
        if let Some(first) = seen.insert((table.name.clone(), parent_column, parent.clone()), index)
        {
            problems.add(Place::series(index), || {
                Problem::at(
                    format!("series[{index}].parent"),
                    format!("series[{first}] writes the same parent's series in \"{}\"; put all points into one", table.name),
                )
            });
        }
        let mut planned_columns = Vec::with_capacity(columns.len());
        for (column_index, input, content) in columns {
            let Some(column) = table.columns.get(column_index) else {
                continue;
            };
            let (values, late) = match content {
                Content::Values(values) => (values, Vec::new()),
                Content::References(references) => {
                    let mut values = Values::with_capacity(column.data_type, references.len());
                    let mut late = Vec::new();
                    for (point, reference) in references.iter().enumerate() {
                        match resolve(reference, questions, answers, known_key) {
                            Ok(Some(RowKey::Known(key))) => values.push(key.into()),
                            Ok(Some(RowKey::Late(address))) => {
                                late.push((point, address));
                                values.push_null();
                            }
                            Ok(None) => values.push_null(),
                            Err(message) => {
                                values.push_null();
                                problems.add(Place::point(index, input, point), || {
                                    Problem::at(
                                        format!("series[{index}].columns.{}[{point}]", column.name),
                                        message,
                                    )
                                });
                            }
                        }
                    }
                    (values, late)
                }
            };
            planned_columns.push(SeriesColumn {
                column: column_index,
                values,
                late,
            });
        }
        planned.push(SeriesStep {
            table,
            parent_column,
            parent,
            order,
            points,
            columns: planned_columns,
        });
    }
    planned
}
