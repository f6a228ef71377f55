//! Frames as bytes.

use arrow_array::{
    Array, RecordBatch,
    cast::AsArray,
    types::{Date32Type, Float64Type, Int64Type, TimestampMicrosecondType},
};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::DataType as ArrowType;
use labdata_domain::timestamp;
use parquet::{arrow::ArrowWriter, basic::Compression, file::properties::WriterProperties};

use crate::{
    FormatError, Frame,
    columns::{day, instant},
};

/// How a frame is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// RFC 4180 with a line of names; null is empty; datetimes as in JSON.
    Csv,
    /// Arrow's IPC stream.
    ArrowStream,
    /// Parquet, compressed with Snappy.
    Parquet,
}

impl Frame {
    /// The frame's bytes.
    ///
    /// # Errors
    /// [`FormatError::Unrepresentable`] for a Parquet file without columns.
    pub fn encode(&self, format: Format) -> Result<Vec<u8>, FormatError> {
        match format {
            Format::Csv => csv(&self.batch),
            Format::ArrowStream => arrow_stream(&self.batch),
            Format::Parquet => parquet(&self.batch),
        }
    }
}

fn arrow_stream(batch: &RecordBatch) -> Result<Vec<u8>, FormatError> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema())?;
    writer.write(batch)?;
    Ok(writer.into_inner()?)
}

fn parquet(batch: &RecordBatch) -> Result<Vec<u8>, FormatError> {
    if batch.num_columns() == 0 {
        let text = "Parquet has no form for a result without columns".to_owned();
        return Err(FormatError::Unrepresentable(text));
    }
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties))?;
    writer.write(batch)?;
    Ok(writer.into_inner()?)
}

fn csv(batch: &RecordBatch) -> Result<Vec<u8>, FormatError> {
    let mut writer = csv::WriterBuilder::new()
        .terminator(csv::Terminator::CRLF)
        .from_writer(Vec::new());
    let schema = batch.schema();
    if batch.num_columns() > 0 {
        writer.write_record(schema.fields().iter().map(|field| field.name()))?;
        for row in 0..batch.num_rows() {
            for column in batch.columns() {
                writer.write_field(cell(column.as_ref(), row))?;
            }
            writer.write_record(None::<&[u8]>)?;
        }
    }
    writer
        .into_inner()
        .map_err(|error| FormatError::Failed(error.to_string()))
}

/// A value as a field of CSV.
fn cell(column: &dyn Array, row: usize) -> String {
    if column.is_null(row) {
        return String::new();
    }
    match column.data_type() {
        ArrowType::Int64 => column.as_primitive::<Int64Type>().value(row).to_string(),
        // The shortest digits that read back as the same number, with an exponent where it helps.
        ArrowType::Float64 => format!("{:?}", column.as_primitive::<Float64Type>().value(row)),
        ArrowType::Boolean => column.as_boolean().value(row).to_string(),
        ArrowType::Timestamp(..) => {
            let micros = column.as_primitive::<TimestampMicrosecondType>().value(row);
            instant(micros).map(timestamp::render).unwrap_or_default()
        }
        ArrowType::Date32 => {
            let days = column.as_primitive::<Date32Type>().value(row);
            day(days).map(timestamp::render_date).unwrap_or_default()
        }
        _ => column.as_string::<i32>().value(row).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use arrow_ipc::reader::StreamReader;
    use bytes::Bytes;
    use labdata_domain::scalar::{DataType, Values};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use serde_json::json;
    use time::macros::{date, datetime};
    use uuid::Uuid;

    use super::*;

    fn read_arrow(bytes: Vec<u8>) -> Vec<RecordBatch> {
        let reader = StreamReader::try_new(Cursor::new(bytes), None).unwrap();
        reader.map(Result::unwrap).collect()
    }

    fn read_parquet(bytes: Vec<u8>) -> Vec<RecordBatch> {
        let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes)).unwrap();
        reader.build().unwrap().map(Result::unwrap).collect()
    }

    /// A column of every type, each with a null.
    fn every_type() -> Frame {
        let columns = [
            (
                "text",
                Values::Text(vec![Some("a,\"b\"\n".to_owned()), None]),
            ),
            ("integer", Values::Integer(vec![Some(i64::MIN), None])),
            ("float", Values::Float(vec![Some(1e-7), None])),
            ("boolean", Values::Boolean(vec![Some(true), None])),
            (
                "datetime",
                Values::Datetime(vec![Some(datetime!(1969-12-31 23:59:59.5 UTC)), None]),
            ),
            (
                "date",
                Values::Date(vec![Some(date!(2024 - 02 - 29)), None]),
            ),
            ("uuid", Values::Uuid(vec![Some(Uuid::nil()), None])),
            ("json", Values::Json(vec![Some(json!({"a": [1]})), None])),
        ];
        let columns: Vec<(&str, &Values)> = columns
            .iter()
            .map(|(name, values)| (*name, values))
            .collect();
        Frame::of_columns(columns, 2).unwrap()
    }

    /// The same two rows as a query's result.
    fn every_type_by_rows() -> Frame {
        let names = [
            "text", "integer", "float", "boolean", "datetime", "date", "uuid", "json",
        ];
        let types = [
            DataType::Text,
            DataType::Integer,
            DataType::Float,
            DataType::Boolean,
            DataType::Datetime,
            DataType::Date,
            DataType::Uuid,
            DataType::Json,
        ];
        let rows = [
            "[\"a,\\\"b\\\"\\n\",-9223372036854775808,1e-07,true,\"1969-12-31T23:59:59.5Z\",\
             \"2024-02-29\",\"00000000-0000-0000-0000-000000000000\",{\"a\":[1]}]",
            "[null,null,null,null,null,null,null,null]",
        ];
        Frame::of_json_rows(&names.map(str::to_owned), &types, &rows.map(str::to_owned)).unwrap()
    }

    #[test]
    fn columns_and_rows_make_the_same_frame() {
        assert_eq!(every_type().batch, every_type_by_rows().batch);
    }

    #[test]
    fn arrow_and_parquet_read_back_as_they_were() {
        let frame = every_type();
        let arrow = read_arrow(frame.encode(Format::ArrowStream).unwrap());
        assert_eq!(arrow, std::slice::from_ref(&frame.batch));
        let parquet = read_parquet(frame.encode(Format::Parquet).unwrap());
        let [read] = parquet.as_slice() else {
            panic!("{} batches", parquet.len());
        };
        assert_eq!(read.columns(), frame.batch.columns());
        assert_eq!(read.schema().fields(), frame.batch.schema().fields());
    }

    #[test]
    fn csv_has_a_line_of_names_and_empty_nulls() {
        let text = String::from_utf8(every_type().encode(Format::Csv).unwrap()).unwrap();
        assert_eq!(
            text,
            "text,integer,float,boolean,datetime,date,uuid,json\r\n\
             \"a,\"\"b\"\"\n\",-9223372036854775808,1e-7,true,1969-12-31T23:59:59.5Z,2024-02-29,\
             00000000-0000-0000-0000-000000000000,\"{\"\"a\"\":[1]}\"\r\n\
             ,,,,,,,\r\n"
        );
    }

    #[test]
    fn nothing_found_is_a_table_of_no_rows() {
        let (names, types) = (["n".to_owned()], [DataType::Integer]);
        let frame = Frame::of_json_rows(&names, &types, &[]).unwrap();
        assert_eq!(frame.encode(Format::Csv).unwrap(), b"n\r\n");
        let arrow = read_arrow(frame.encode(Format::ArrowStream).unwrap());
        assert_eq!(arrow.iter().map(RecordBatch::num_rows).sum::<usize>(), 0);
        let parquet = read_parquet(frame.encode(Format::Parquet).unwrap());
        assert_eq!(parquet.iter().map(RecordBatch::num_rows).sum::<usize>(), 0);
    }

    #[test]
    fn what_a_type_cannot_hold_is_told() {
        let (names, types) = (["at".to_owned()], [DataType::Datetime]);
        let rows = ["[\"infinity\"]".to_owned()];
        let error = Frame::of_json_rows(&names, &types, &rows).unwrap_err();
        assert!(error.to_string().contains("column at: \"infinity\""));
        let empty = Frame::of_json_rows(&[], &[], &["[]".to_owned()]).unwrap();
        assert!(matches!(
            empty.encode(Format::Parquet),
            Err(FormatError::Unrepresentable(_))
        ));
        assert!(empty.encode(Format::ArrowStream).is_ok());
    }
}
