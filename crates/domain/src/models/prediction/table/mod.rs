//! Predictions for the rows of a table, written into one of its columns.

use serde_json::{Map, Value};

use super::{
    response::PredictedValue,
    rows::{InvalidRows, RowProblem},
    signature::ModelSignature,
};
use crate::{
    catalog::{Column, SystemColumn, Table},
    data::write::cell::Cell,
    models::{Class, ProblemType},
    numbers::grouped,
    refusal::{ErrorCode, Refuse},
    scalar::DataType,
};

/// Maximum number of rows of a table that are predicted at once.
pub const MAX_TABLE_PREDICTION_ROWS: usize = 100_000;

/// Predictions for a table that were checked against the model and the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TablePrediction {
    /// Name of the table.
    pub table: String,
    /// Name of its primary key.
    pub key: String,
    /// Name of the column that is written.
    pub output: String,
    output_type: DataType,
}

/// Reason why a model cannot predict the rows of a table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTablePrediction {
    /// Points of raw tables cannot be updated.
    #[error("table \"{0}\" is raw: predictions are written to rows of curated tables")]
    RawTable(String),
    /// A column that the model reads is missing.
    #[error("table \"{table}\" has no column \"{column}\", which the model reads")]
    NoSuchFeature {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// The output column is missing.
    #[error("output_column: table \"{table}\" has no column \"{column}\"")]
    NoSuchOutput {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// The output column cannot hold predictions.
    #[error("output_column: \"{0}\" is a key, which predictions do not change")]
    OutputIsKey(String),
    /// The model reads the output column.
    #[error("output_column: the model reads \"{0}\"; choose another column")]
    OutputIsFeature(String),
    /// The output column has another type than the predictions.
    #[error("output_column: \"{column}\" has type {data_type}, but the model predicts {predicted}")]
    OutputType {
        /// The column.
        column: String,
        /// Its type.
        data_type: DataType,
        /// Description of the predictions.
        predicted: &'static str,
    },
    /// Masks are images.
    #[error("the model predicts images, which no column holds")]
    Masks,
    /// Too many rows meet the filters.
    #[error(
        "more than {} rows meet the filters: narrow them, and predict in several requests",
        grouped(MAX_TABLE_PREDICTION_ROWS)
    )]
    TooManyRows,
}

impl Refuse for InvalidTablePrediction {
    fn code(&self) -> ErrorCode {
        ErrorCode::InvalidPrediction
    }
}

impl TablePrediction {
    /// Checks that the model can predict the rows of the table, and that the column can hold the
    /// predictions.
    ///
    /// # Errors
    /// All reasons against it.
    pub fn plan(
        table: &Table,
        signature: &ModelSignature,
        output: &str,
    ) -> Result<Self, Vec<InvalidTablePrediction>> {
        let Some(key) = table.primary_key() else {
            return Err(vec![InvalidTablePrediction::RawTable(table.name.clone())]);
        };
        let missing = signature.features.iter().filter(|feature| {
            // System columns can be read, too.
            table.column(&feature.name).is_none()
                && SystemColumn::from_name(&feature.name).is_none()
        });
        let mut problems: Vec<_> = missing
            .map(|feature| InvalidTablePrediction::NoSuchFeature {
                table: table.name.clone(),
                column: feature.name.clone(),
            })
            .collect();
        let column = table.column(output);
        match column {
            None => problems.push(InvalidTablePrediction::NoSuchOutput {
                table: table.name.clone(),
                column: output.to_owned(),
            }),
            Some(column) => problems.extend(check_output(column, signature)),
        }
        match column {
            Some(column) if problems.is_empty() => Ok(Self {
                table: table.name.clone(),
                key: key.name.clone(),
                output: column.name.clone(),
                output_type: column.data_type,
            }),
            _ => Err(problems),
        }
    }

    /// Returns the key of a row of the table.
    #[must_use]
    pub fn key_of(&self, row: &Map<String, Value>) -> Cell {
        row.get(&self.key).cloned().map_or(Cell::Null, Cell::from)
    }

    /// Returns the cell for a prediction.
    #[must_use]
    pub fn cell(&self, value: Option<PredictedValue>) -> Cell {
        let is_text = matches!(self.output_type, DataType::String | DataType::Text);
        match value {
            // Masks do not come here: `plan` refuses models that predict them.
            None | Some(PredictedValue::Mask(_)) => Cell::Null,
            // Before the other classes, because a column of texts takes all of them.
            Some(PredictedValue::Class(class)) if is_text => Cell::Text(class.to_string()),
            Some(PredictedValue::Class(Class::Boolean(flag))) => Cell::Boolean(flag),
            Some(PredictedValue::Class(Class::Integer(number))) => Cell::Integer(number),
            Some(PredictedValue::Number(number) | PredictedValue::Class(Class::Float(number))) => {
                Cell::Float(number)
            }
            Some(PredictedValue::Class(Class::Text(text))) => Cell::Text(text),
        }
    }

    /// Lists the problems of rows, which are named by their keys.
    #[must_use]
    pub fn describe(&self, invalid: &InvalidRows, keys: &[Cell]) -> String {
        invalid.listed(|problem| {
            let RowProblem {
                row,
                column,
                message,
            } = problem;
            match row.and_then(|row| keys.get(row)) {
                Some(key) => {
                    format!("row {}, column \"{column}\": {message}", display(key))
                }
                None => format!("column \"{column}\": {message}"),
            }
        })
    }
}

/// Returns the key of a row for messages.
fn display(key: &Cell) -> String {
    match key {
        Cell::Text(text) => format!("\"{text}\""),
        Cell::Integer(number) => number.to_string(),
        other => other.kind().to_owned(),
    }
}

fn check_output(column: &Column, signature: &ModelSignature) -> Option<InvalidTablePrediction> {
    let name = column.name.clone();
    // A predicted key would make it another row, or point it at one.
    if column.is_primary_key || column.references.is_some() {
        return Some(InvalidTablePrediction::OutputIsKey(name));
    }
    // The next prediction would depend on this one.
    if signature.features.iter().any(|it| it.name == column.name) {
        return Some(InvalidTablePrediction::OutputIsFeature(name));
    }
    let (predicted, fits): (&'static str, &[DataType]) = match signature.problem {
        ProblemType::SemanticSegmentation => return Some(InvalidTablePrediction::Masks),
        ProblemType::Regression => ("numbers", &[DataType::Float]),
        ProblemType::Binary | ProblemType::Multiclass => classes(signature.classes.as_deref()),
    };
    (!fits.contains(&column.data_type)).then_some(InvalidTablePrediction::OutputType {
        column: name,
        data_type: column.data_type,
        predicted,
    })
}

/// Describes classes, and returns the types of columns that hold them.
fn classes(classes: Option<&[Class]>) -> (&'static str, &'static [DataType]) {
    use DataType::{Boolean, Float, Integer, String, Text};
    let all = |test: fn(&Class) -> bool| classes.is_some_and(|it| it.iter().all(test));
    // From the narrowest type on: whole numbers are numbers, too.
    if all(|class| matches!(class, Class::Boolean(_))) {
        ("true and false", &[Boolean, String, Text])
    } else if all(|class| matches!(class, Class::Integer(_))) {
        (
            "classes that are whole numbers",
            &[Integer, Float, String, Text],
        )
    } else if all(|class| matches!(class, Class::Integer(_) | Class::Float(_))) {
        ("classes that are numbers", &[Float, String, Text])
    } else {
        ("classes that are texts", &[String, Text])
    }
}

#[cfg(test)]
mod tests;
