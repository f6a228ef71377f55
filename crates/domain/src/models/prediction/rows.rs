//! Rows to predict.

use std::fmt;

use serde_json::{Map, Value};
use time::{OffsetDateTime, Time};

use crate::{
    ids::FileId,
    models::{FeatureType, ModelFeature},
    numbers::grouped,
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

/// Checks rows against the features of a model, and turns them into columns. Columns that are no
/// features are ignored.
///
/// # Errors
/// The problems of all rows.
pub fn check_rows(
    features: &[ModelFeature],
    rows: Vec<Map<String, Value>>,
) -> Result<PredictionInput, InvalidRows> {
    let count = rows.len();
    let mut columns: Vec<FeatureColumn> = features
        .iter()
        .map(|feature| FeatureColumn {
            name: feature.name.clone(),
            values: FeatureValues::with_capacity(feature.data_type, count),
        })
        .collect();
    let mut problems = InvalidRows::default();
    for (index, mut row) in rows.into_iter().enumerate() {
        for (feature, column) in features.iter().zip(&mut columns) {
            let read = match row.remove(&feature.name) {
                Some(value) => column.values.push(value).map_err(|value| {
                    let expected = expectation(feature.data_type);
                    format!("expected {expected}, not {}", described(&value))
                }),
                None => Err("this feature is missing".to_owned()),
            };
            if let Err(message) = read {
                problems.push(RowProblem {
                    row: Some(index),
                    column: feature.name.clone(),
                    message,
                });
            }
        }
    }
    let input = PredictionInput {
        rows: count,
        columns,
    };
    problems.unless_any(input)
}

impl FeatureValues {
    fn with_capacity(data_type: FeatureType, rows: usize) -> Self {
        match data_type {
            FeatureType::Integer | FeatureType::Float => Self::Numbers(Vec::with_capacity(rows)),
            FeatureType::Boolean => Self::Booleans(Vec::with_capacity(rows)),
            FeatureType::String => Self::Texts(Vec::with_capacity(rows)),
            FeatureType::Date | FeatureType::Datetime => Self::Times(Vec::with_capacity(rows)),
            FeatureType::Image => Self::Images(Vec::with_capacity(rows)),
        }
    }

    /// Appends a value of the request. Returns one that does not fit.
    fn push(&mut self, value: Value) -> Result<(), Value> {
        match (self, value) {
            (Self::Numbers(values), Value::Null) => values.push(None),
            (Self::Booleans(values), Value::Null) => values.push(None),
            (Self::Texts(values), Value::Null) => values.push(None),
            (Self::Times(values), Value::Null) => values.push(None),
            (Self::Numbers(values), Value::Number(number)) => {
                match number.as_f64().filter(|number| number.is_finite()) {
                    Some(number) => values.push(Some(number)),
                    None => return Err(Value::Number(number)),
                }
            }
            (Self::Booleans(values), Value::Bool(flag)) => values.push(Some(flag)),
            (Self::Texts(values), Value::String(text)) => values.push(Some(text)),
            (Self::Times(values), Value::String(text)) => match moment(&text) {
                Some(at) => values.push(Some(at)),
                None => return Err(Value::String(text)),
            },
            (Self::Images(files), Value::String(text)) => match text.parse() {
                Ok(file) => files.push(file),
                Err(_) => return Err(Value::String(text)),
            },
            (_, value) => return Err(value),
        }
        Ok(())
    }
}

/// Reads a date, at midnight, or a point in time.
fn moment(text: &str) -> Option<OffsetDateTime> {
    let midnight = |date: time::Date| date.with_time(Time::MIDNIGHT).assume_utc();
    timestamp::parse(text).or_else(|| timestamp::parse_date(text).map(midnight))
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
fn described(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) => {
            let start: String = text.chars().take(MAX_QUOTED).collect();
            format!("the string \"{start}\"")
        }
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}
