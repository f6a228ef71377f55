//! Conversion of JSON rows to Arrow arrays.

use std::sync::Arc;

use arrow_array::{
    ArrayRef,
    builder::{
        BooleanBuilder, Date32Builder, Float64Builder, Int64Builder, StringBuilder,
        TimestampMicrosecondBuilder,
    },
};
use labdata_domain::{scalar::DataType, timestamp};
use serde_json::value::RawValue;

use crate::{
    FormatError,
    columns::{days, micros, utc},
};

/// Builder of one column.
enum ColumnBuilder {
    Integer(Int64Builder),
    Float(Float64Builder),
    Boolean(BooleanBuilder),
    Datetime(TimestampMicrosecondBuilder),
    Date(Date32Builder),
    Text(StringBuilder),
    /// JSON, stored as text.
    Json(StringBuilder),
}

pub(crate) fn arrays(
    names: &[String],
    types: &[DataType],
    rows: impl Iterator<Item = String>,
) -> Result<Vec<ArrayRef>, FormatError> {
    let mut columns: Vec<(&String, ColumnBuilder)> = names
        .iter()
        .zip(types)
        .map(|(name, data_type)| (name, ColumnBuilder::new(*data_type)))
        .collect();
    for row in rows {
        let cells: Vec<&RawValue> =
            // Raw values: a number is parsed as its column's type, without a detour that might round it.
            serde_json::from_str(&row).map_err(|error| FormatError::Failed(error.to_string()))?;
        for ((name, column), cell) in columns.iter_mut().zip(cells) {
            column.push(name, cell.get())?;
        }
    }
    Ok(columns
        .into_iter()
        .map(|(_, column)| column.finish())
        .collect())
}

impl ColumnBuilder {
    fn new(data_type: DataType) -> Self {
        match data_type {
            DataType::Integer => Self::Integer(Int64Builder::new()),
            DataType::Float => Self::Float(Float64Builder::new()),
            DataType::Boolean => Self::Boolean(BooleanBuilder::new()),
            DataType::Datetime => {
                Self::Datetime(TimestampMicrosecondBuilder::new().with_data_type(utc()))
            }
            DataType::Date => Self::Date(Date32Builder::new()),
            DataType::String | DataType::Text | DataType::Uuid => Self::Text(StringBuilder::new()),
            DataType::Json => Self::Json(StringBuilder::new()),
        }
    }

    /// Appends a value, given as JSON.
    fn push(&mut self, name: &str, json: &str) -> Result<(), FormatError> {
        let cell = (json != "null").then_some(json);
        let misfit = || {
            FormatError::Unrepresentable(format!(
                "column {name}: {json} has no form in CSV, Arrow and Parquet: cast it to text"
            ))
        };
        let text = |json: &str| serde_json::from_str::<String>(json).map_err(|_| misfit());
        match self {
            Self::Integer(column) => {
                let number = cell.map(str::parse).transpose();
                column.append_option(number.map_err(|_| misfit())?);
            }
            Self::Float(column) => {
                let number = cell.map(|cell| float(cell).ok_or_else(misfit));
                column.append_option(number.transpose()?);
            }
            Self::Boolean(column) => column.append_option(cell.map(|flag| flag == "true")),
            Self::Datetime(column) => column.append_option(match cell {
                Some(cell) => {
                    let at = timestamp::parse(&text(cell)?).ok_or_else(misfit)?;
                    Some(micros(name, at)?)
                }
                None => None,
            }),
            Self::Date(column) => column.append_option(match cell {
                Some(cell) => Some(days(
                    timestamp::parse_date(&text(cell)?).ok_or_else(misfit)?,
                )),
                None => None,
            }),
            Self::Text(column) => column.append_option(cell.map(text).transpose()?),
            // As PostgreSQL rendered it, without a second rendering.
            Self::Json(column) => column.append_option(cell),
        }
        Ok(())
    }

    fn finish(self) -> ArrayRef {
        match self {
            Self::Integer(mut column) => Arc::new(column.finish()),
            Self::Float(mut column) => Arc::new(column.finish()),
            Self::Boolean(mut column) => Arc::new(column.finish()),
            Self::Datetime(mut column) => Arc::new(column.finish()),
            Self::Date(mut column) => Arc::new(column.finish()),
            Self::Text(mut column) | Self::Json(mut column) => Arc::new(column.finish()),
        }
    }
}

/// The number that a token of JSON stands for. `None` for infinity, and for a whole number that a float
/// would change, such as the sum of large integers. Fractions lose digits by nature: a third has no end.
fn float(json: &str) -> Option<f64> {
    let number: f64 = json.parse().ok()?;
    let is_whole = !json.contains(['.', 'e', 'E']);
    let is_exact = !is_whole || format!("{number:.0}") == json;
    (number.is_finite() && is_exact).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_float_never_holds_another_whole_number() {
        for (json, number) in [
            ("0", 0.0),
            ("-0", -0.0),
            ("9007199254740992", 9_007_199_254_740_992.0),
            ("100000000000000000000", 1e20),
            ("1e22", 1e22),
            ("0.33333333333333333333", 1.0 / 3.0),
        ] {
            assert_eq!(float(json), Some(number), "{json}");
        }
        let huge = format!("1{}", "0".repeat(400));
        for json in ["9007199254740993", "-9007199254740993", &huge, "1e999", "x"] {
            assert_eq!(float(json), None, "{json}");
        }
    }
}
