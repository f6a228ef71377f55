//! Rows to predict.

use std::fmt;

use time::{OffsetDateTime, Time};

use crate::{
    data::write::{
        InputColumn, Rows,
        cell::{Cell, integer_to_float, large_to_float},
    },
    ids::FileId,
    models::{FeatureType, ModelFeature},
    numbers::grouped,
    refusal::{ErrorCode, Refuse},
    scalar::DataType,
    timestamp,
};

/// Maximum number of rows of a prediction.
pub const MAX_PREDICTION_ROWS: usize = 10_000;

/// Maximum number of problems that are reported one by one.
const MAX_PROBLEMS: usize = 100;

/// Maximum number of characters of a value that a message repeats.
const MAX_QUOTED: usize = 60;

/// Checked rows: one column per feature, in the order of the model's features.
#[derive(Clone, Debug, PartialEq)]
pub struct PredictionInput {
    /// Number of rows.
    pub rows: usize,
    /// The columns.
    pub columns: Vec<FeatureColumn>,
}

/// Values of a feature.
#[derive(Clone, Debug, PartialEq)]
pub struct FeatureColumn {
    /// Name of the feature.
    pub name: String,
    /// A value per row.
    pub values: FeatureValues,
}

/// Values of one type; `None` is null.
#[derive(Clone, Debug, PartialEq)]
pub enum FeatureValues {
    /// Of integers and floats.
    Numbers(Vec<Option<f64>>),
    /// Of booleans.
    Booleans(Vec<Option<bool>>),
    /// Of texts.
    Texts(Vec<Option<String>>),
    /// Of dates (midnight in UTC) and points in time.
    Times(Vec<Option<OffsetDateTime>>),
    /// Of images.
    Images(Vec<FileId>),
}

/// Problem of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowProblem {
    /// Row, counted from 0; `None` if the column as a whole is wrong.
    pub row: Option<usize>,
    /// Name of the feature.
    pub column: String,
    /// Cause.
    pub message: String,
}

impl RowProblem {
    /// A problem of an image column: the organization has no such file.
    #[must_use]
    pub fn no_such_file(row: usize, column: &str, file: FileId) -> Self {
        Self {
            row: Some(row),
            column: column.to_owned(),
            message: format!("there is no file {file}"),
        }
    }
}

impl fmt::Display for RowProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            row,
            column,
            message,
        } = self;
        match row {
            Some(row) => write!(f, "data[{row}].{column}: {message}"),
            None => write!(f, "data, column \"{column}\": {message}"),
        }
    }
}

/// Rows that the model cannot read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InvalidRows {
    /// The first problems, by row and then by column.
    pub problems: Vec<RowProblem>,
    /// Number of further problems.
    pub left_out: usize,
}

impl InvalidRows {
    /// Adds a problem. Past 100 problems, only counts it.
    pub fn push(&mut self, problem: RowProblem) {
        // Thousands of wrong rows would otherwise make a response of megabytes.
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(problem);
        } else {
            self.left_out += 1;
        }
    }

    /// Lists the problems.
    pub(super) fn listed(&self, describe: impl Fn(&RowProblem) -> String) -> String {
        let mut lines: Vec<String> = self.problems.iter().map(describe).collect();
        if self.left_out > 0 {
            lines.push(format!("and {} more problems", grouped(self.left_out)));
        }
        lines.join("; ")
    }

    /// Returns the value, unless there are problems.
    ///
    /// # Errors
    /// The problems.
    pub fn unless_any<T>(self, value: T) -> Result<T, Self> {
        if self.problems.is_empty() {
            Ok(value)
        } else {
            Err(self)
        }
    }
}

impl FromIterator<RowProblem> for InvalidRows {
    fn from_iter<I: IntoIterator<Item = RowProblem>>(problems: I) -> Self {
        let mut all = Self::default();
        problems.into_iter().for_each(|problem| all.push(problem));
        all
    }
}

impl fmt::Display for InvalidRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.listed(ToString::to_string))
    }
}

impl std::error::Error for InvalidRows {}

impl Refuse for InvalidRows {
    fn code(&self) -> ErrorCode {
        ErrorCode::InvalidPrediction
    }
}

/// Checks rows against the features of a model, and turns them into columns. Columns that are no
/// features are ignored.
///
/// # Errors
/// The problems of all rows.
pub fn check_rows(features: &[ModelFeature], rows: &Rows) -> Result<PredictionInput, InvalidRows> {
    let columns: Option<Vec<FeatureColumn>> = features
        .iter()
        .map(|feature| {
            let cells = rows.column(&feature.name)?.cells();
            let values = FeatureValues::read(feature.data_type, rows.len(), cells)?;
            Some(FeatureColumn {
                name: feature.name.clone(),
                values,
            })
        })
        .collect();
    match columns {
        Some(columns) => Ok(PredictionInput {
            rows: rows.len(),
            columns,
        }),
        // Reading by column is fast; only a failure pays for a second pass, in the order of the request.
        None => Err(problems(features, rows)),
    }
}

/// Lists the problems of all rows.
fn problems(features: &[ModelFeature], rows: &Rows) -> InvalidRows {
    let columns = features.iter().map(|feature| rows.column(&feature.name));
    let mut columns: Vec<_> = columns
        .map(|column| column.map(InputColumn::cells))
        .collect();
    let mut problems = InvalidRows::default();
    for row in 0..rows.len() {
        for (feature, cells) in features.iter().zip(&mut columns) {
            let cell = cells.as_mut().and_then(Iterator::next);
            let message = match cell {
                // `None` where no row at all has this column.
                None | Some(Cell::Absent) => "this feature is missing".to_owned(),
                Some(cell) if fits(feature.data_type, cell) => continue,
                Some(cell) => {
                    let expected = expectation(feature.data_type);
                    format!("expected {expected}, not {}", described(cell))
                }
            };
            problems.push(RowProblem {
                row: Some(row),
                column: feature.name.clone(),
                message,
            });
        }
    }
    problems
}

fn fits(data_type: FeatureType, cell: &Cell) -> bool {
    // The same reader, so that a problem is reported exactly where reading fails.
    FeatureValues::read(data_type, 1, std::iter::once(cell)).is_some()
}

impl FeatureValues {
    /// Reads that many cells as values of the type; `None` if one does not fit.
    fn read<'c>(
        data_type: FeatureType,
        count: usize,
        cells: impl Iterator<Item = &'c Cell>,
    ) -> Option<Self> {
        Some(match data_type {
            FeatureType::Integer | FeatureType::Float => {
                Self::Numbers(nullable(count, cells, |cell| match cell {
                    Cell::Float(number) => Some(*number).filter(|number| number.is_finite()),
                    Cell::Integer(number) => Some(integer_to_float(*number)),
                    Cell::Large(number) => Some(large_to_float(*number)),
                    _ => None,
                })?)
            }
            FeatureType::Boolean => Self::Booleans(nullable(count, cells, |cell| match cell {
                Cell::Boolean(flag) => Some(*flag),
                _ => None,
            })?),
            FeatureType::String => Self::Texts(nullable(count, cells, |cell| match cell {
                Cell::Text(text) => Some(text.clone()),
                _ => None,
            })?),
            FeatureType::Date => Self::Times(nullable(count, cells, |cell| match cell {
                Cell::Text(text) => midnight(text),
                _ => None,
            })?),
            // No date alone, as in a write of data: its time of day would be a guess.
            FeatureType::Datetime => Self::Times(nullable(count, cells, |cell| match cell {
                Cell::Text(text) => timestamp::parse(text),
                _ => None,
            })?),
            FeatureType::Image => {
                let files = cells.map(|cell| match cell {
                    Cell::Text(text) => text.parse().ok(),
                    _ => None,
                });
                Self::Images(files.collect::<Option<_>>()?)
            }
        })
    }
}

/// Reads that many cells; `None` if one does not fit.
fn nullable<'c, T>(
    count: usize,
    cells: impl Iterator<Item = &'c Cell>,
    read: impl Fn(&Cell) -> Option<T>,
) -> Option<Vec<Option<T>>> {
    let mut values = Vec::with_capacity(count);
    for cell in cells {
        values.push(match cell {
            Cell::Null => None,
            cell => Some(read(cell)?),
        });
    }
    Some(values)
}

/// Reads a date, as its midnight in UTC.
fn midnight(text: &str) -> Option<OffsetDateTime> {
    let date = timestamp::parse_date(text)?;
    Some(date.with_time(Time::MIDNIGHT).assume_utc())
}

/// Describes a value of the type, for messages.
const fn expectation(data_type: FeatureType) -> &'static str {
    match data_type {
        FeatureType::Integer | FeatureType::Float => DataType::Float.expectation(),
        FeatureType::Boolean => DataType::Boolean.expectation(),
        FeatureType::String => DataType::String.expectation(),
        FeatureType::Date => DataType::Date.expectation(),
        FeatureType::Datetime => DataType::Datetime.expectation(),
        FeatureType::Image => "the id of an image file",
    }
}

/// Describes a value of a request, for messages.
fn described(cell: &Cell) -> String {
    match cell {
        Cell::Absent => "nothing".to_owned(),
        Cell::Null => "null".to_owned(),
        Cell::Boolean(flag) => flag.to_string(),
        Cell::Integer(number) => format!("the number {number}"),
        Cell::Large(number) => format!("the number {number}"),
        // With its point, as JSON has it.
        Cell::Float(number) => format!("the number {number:?}"),
        Cell::Text(text) => {
            let start: String = text.chars().take(MAX_QUOTED).collect();
            format!("the string \"{start}\"")
        }
        Cell::List(_) => "a list".to_owned(),
        Cell::Object(_) => "an object".to_owned(),
        Cell::File(cell) => cell.to_string(),
    }
}
