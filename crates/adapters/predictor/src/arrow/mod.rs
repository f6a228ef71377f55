//! Requests and responses as Arrow streams.

use std::{collections::HashMap, sync::Arc};

use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray, cast::AsArray, types::Float64Type, types::Int64Type,
};
use arrow_ipc::{reader::StreamReader, writer::StreamWriter};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use labdata_domain::models::{
    Class, FeatureValues, MAX_PREDICTION_ROWS, PredictionInput, RawPredictions,
};

/// First bytes of an Arrow stream. JSON cannot begin with them.
const MARKER: &[u8] = b"\xff\xff\xff\xff";

/// Key of the schema's metadata that holds the id of a request or a response.
const ID: &str = "id";

/// Returns true for an Arrow stream.
pub(crate) fn is_stream(body: &[u8]) -> bool {
    body.starts_with(MARKER)
}

/// Returns the stream of a request without images.
pub(crate) fn encode(id: u64, input: &PredictionInput) -> Result<Vec<u8>, ArrowError> {
    let arrays = input.columns.iter().map(|column| array(&column.values));
    let arrays = arrays.collect::<Result<Vec<ArrayRef>, _>>()?;
    let fields: Vec<Field> = input
        .columns
        .iter()
        .zip(&arrays)
        .map(|(column, array)| Field::new(&column.name, array.data_type().clone(), true))
        .collect();
    let metadata = HashMap::from([(ID.to_owned(), id.to_string())]);
    let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)?;
    // The metadata of the schema and the batch takes some hundred bytes a column.
    let size = batch.get_array_memory_size() + 512 * (1 + batch.num_columns());
    let mut writer = StreamWriter::try_new(Vec::with_capacity(size), &schema)?;
    writer.write(&batch)?;
    writer.into_inner()
}

fn array(values: &FeatureValues) -> Result<ArrayRef, ArrowError> {
    Ok(match values {
        FeatureValues::Numbers(values) if values.iter().all(Option::is_some) => {
            // Of known length, other than `flatten`, and without a bit per value.
            let numbers = values.iter().map(|value| value.unwrap_or_default());
            Arc::new(Float64Array::from_iter_values(numbers))
        }
        FeatureValues::Numbers(values) => Arc::new(values.iter().collect::<Float64Array>()),
        FeatureValues::Booleans(values) => Arc::new(values.iter().collect::<BooleanArray>()),
        FeatureValues::Texts(values) => Arc::new(values.iter().collect::<StringArray>()),
        FeatureValues::Times(values) => {
            let micros = values
                .iter()
                .map(|at| at.and_then(|at| i64::try_from(at.unix_timestamp_nanos() / 1_000).ok()));
            Arc::new(micros.collect::<TimestampMicrosecondArray>())
        }
        FeatureValues::Images(_) => {
            return Err(ArrowError::NotYetImplemented("images".to_owned()));
        }
    })
}

/// Reads the id and the content of a response with that number of classes. Panics on some malformed
/// streams, so callers catch panics.
///
/// # Errors
/// If the stream is no such response.
pub(crate) fn decode(body: &[u8], classes: usize) -> Result<(u64, RawPredictions), ArrowError> {
    let reader = StreamReader::try_new(body, None)?;
    let schema = reader.schema();
    // First: `as_primitive` and `as_string` panic at a column of another type.
    check(&schema, classes)?;
    let id = schema.metadata().get(ID).and_then(|id| id.parse().ok());
    let id = id.ok_or_else(|| refused("no id"))?;
    let mut response = RawPredictions {
        values: Vec::new(),
        probabilities: (classes > 0).then(|| vec![Vec::new(); classes]),
        masks: None,
    };
    for batch in reader {
        let batch = batch?;
        if response.values.len() + batch.num_rows() > MAX_PREDICTION_ROWS {
            return Err(refused("too many rows"));
        }
        let (values, probabilities) = batch
            .columns()
            .split_first()
            .ok_or_else(|| refused("no columns"))?;
        let values = read_values(values)?;
        if response.values.is_empty() {
            response.values = values;
        } else {
            response.values.extend(values);
        }
        for (read, column) in response
            .probabilities
            .iter_mut()
            .flatten()
            .zip(probabilities)
        {
            read.extend(column.as_primitive::<Float64Type>());
        }
    }
    Ok((id, response))
}

/// Checks that the columns are those of a response, before any is read.
fn check(schema: &Schema, classes: usize) -> Result<(), ArrowError> {
    let mut fields = schema.fields().iter();
    let is_value = fields.next().is_some_and(|field| {
        let is_known = matches!(
            field.data_type(),
            DataType::Null
                | DataType::Boolean
                | DataType::Int64
                | DataType::Float64
                | DataType::Utf8
        );
        is_known && field.name() == "prediction"
    });
    let mut numbers = 0..;
    let is_probability = |field: &Arc<Field>| {
        let expected = numbers
            .next()
            .map(|number: u32| format!("probability.{number}"));
        Some(field.name()) == expected.as_ref() && *field.data_type() == DataType::Float64
    };
    if is_value && fields.len() == classes && fields.all(is_probability) {
        Ok(())
    } else {
        Err(refused("other columns"))
    }
}

fn refused(reason: &str) -> ArrowError {
    ArrowError::SchemaError(reason.to_owned())
}

fn read_values(column: &dyn Array) -> Result<Vec<Option<Class>>, ArrowError> {
    Ok(match column.data_type() {
        DataType::Null => vec![None; column.len()],
        DataType::Boolean => {
            let values = column.as_boolean().iter();
            values.map(|value| value.map(Class::Boolean)).collect()
        }
        DataType::Int64 => {
            let values: &Int64Array = column.as_primitive::<Int64Type>();
            let values = values.iter();
            values.map(|value| value.map(Class::Integer)).collect()
        }
        DataType::Float64 => {
            let values = column.as_primitive::<Float64Type>().iter();
            values.map(|value| value.map(Class::Float)).collect()
        }
        DataType::Utf8 => {
            let values = column.as_string::<i32>().iter();
            let text = |text: &str| Class::Text(text.to_owned());
            values.map(|value| value.map(text)).collect()
        }
        _ => return Err(refused("another type")),
    })
}

#[cfg(test)]
mod tests;
