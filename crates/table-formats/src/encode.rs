//! Encoding of frames as CSV, Arrow and Parquet.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, RecordBatch, StringArray,
    cast::AsArray,
    types::{Date32Type, Float64Type, Int64Type, TimestampMicrosecondType},
};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType as ArrowType, SchemaRef};
use labdata_domain::{data::formula::neutralized, timestamp};
use parquet::{arrow::ArrowWriter, basic::Compression, file::properties::WriterProperties};

use crate::{
    FormatError, Frame,
    columns::{day, instant},
    frame::BATCH,
};

/// Output format of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// RFC 4180 with a header line; null is an empty field and an empty text a pair of quotation marks,
    /// datetimes are as in JSON.
    Csv,
    /// Arrow IPC stream.
    ArrowStream,
    /// Parquet, compressed with Snappy.
    Parquet,
}

/// A format with its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoding {
    /// The format.
    pub format: Format,
    /// In CSV, texts that a spreadsheet would take for formulas begin with an apostrophe.
    pub neutralize_formulas: bool,
}

impl From<Format> for Encoding {
    fn from(format: Format) -> Self {
        Self {
            format,
            neutralize_formulas: false,
        }
    }
}

impl Encoding {
    /// Returns true if texts are changed.
    pub(crate) fn changes_texts(self) -> bool {
        self.neutralize_formulas && self.format == Format::Csv
    }
}

/// The texts of an array as a spreadsheet does not compute them.
pub(crate) fn neutralized_array(array: &dyn Array) -> ArrayRef {
    let texts = array.as_string::<i32>().iter();
    let texts = texts.map(|text| text.map(neutralized));
    Arc::new(texts.collect::<StringArray>())
}

impl Frame {
    /// Starts encoding the frame.
    ///
    /// # Errors
    /// [`FormatError::Unrepresentable`] for a Parquet or CSV file without columns. All other errors are
    /// found when the frame is made.
    pub fn encode(self, format: Format) -> Result<Chunks, FormatError> {
        Ok(Chunks {
            writer: Some(BatchWriter::new(self.schema, format)?),
            batches: self.batches.into_iter(),
        })
    }
}

/// Maximum number of rows of a Parquet row group, which is in memory until it is complete.
const GROUP_ROWS: usize = 16 * BATCH;

/// Maximum size of a Parquet row group in bytes, as far as the writer can tell.
const GROUP_BYTES: usize = 16 << 20;

/// Writes batches of rows in a format.
pub(crate) struct BatchWriter {
    schema: SchemaRef,
    writer: Writer,
}

enum Writer {
    Csv { begun: bool },
    Arrow(Box<StreamWriter<Vec<u8>>>),
    Parquet(Box<ArrowWriter<Vec<u8>>>),
}

impl BatchWriter {
    pub(crate) fn new(schema: SchemaRef, format: Format) -> Result<Self, FormatError> {
        let writer = match format {
            Format::Csv | Format::Parquet if schema.fields().is_empty() => {
                let name = if format == Format::Csv {
                    "CSV"
                } else {
                    "Parquet"
                };
                let text = format!("{name} has no form for a result without columns");
                return Err(FormatError::Unrepresentable(text));
            }
            Format::Csv => Writer::Csv { begun: false },
            Format::ArrowStream => {
                Writer::Arrow(Box::new(StreamWriter::try_new(Vec::new(), &schema)?))
            }
            Format::Parquet => {
                let properties = WriterProperties::builder()
                    .set_compression(Compression::SNAPPY)
                    .set_max_row_group_row_count(Some(GROUP_ROWS))
                    // Rows with long texts would otherwise fill the memory long before their number is reached.
                    .set_max_row_group_bytes(Some(GROUP_BYTES))
                    .build();
                let schema = Arc::clone(&schema);
                Writer::Parquet(Box::new(ArrowWriter::try_new(
                    Vec::new(),
                    schema,
                    Some(properties),
                )?))
            }
        };
        Ok(Self { schema, writer })
    }

    /// Writes a batch; returns the bytes that are complete, which may be none.
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<Vec<u8>, FormatError> {
        match &mut self.writer {
            Writer::Csv { begun } => {
                let header = !std::mem::replace(begun, true);
                Ok(csv(batch, header))
            }
            Writer::Arrow(writer) => {
                writer.write(batch)?;
                Ok(std::mem::take(writer.get_mut()))
            }
            Writer::Parquet(writer) => {
                writer.write(batch)?;
                Ok(std::mem::take(writer.inner_mut()))
            }
        }
    }

    /// Returns the last bytes.
    pub(crate) fn finish(self) -> Result<Vec<u8>, FormatError> {
        match self.writer {
            // A result without rows still has its header line.
            Writer::Csv { begun: false } => Ok(csv(&RecordBatch::new_empty(self.schema), true)),
            Writer::Csv { begun: true } => Ok(Vec::new()),
            Writer::Arrow(writer) => Ok(writer.into_inner()?),
            Writer::Parquet(writer) => Ok(writer.into_inner()?),
        }
    }
}

/// Iterator over the bytes of an encoded frame, which frees each part once it is written.
pub struct Chunks {
    batches: std::vec::IntoIter<RecordBatch>,
    /// `None` after the last chunk.
    writer: Option<BatchWriter>,
}

impl Chunks {
    fn write(&mut self) -> Result<Vec<u8>, FormatError> {
        let Some(writer) = &mut self.writer else {
            return Ok(Vec::new());
        };
        for batch in self.batches.by_ref() {
            let written = writer.write(&batch)?;
            // An empty chunk means the end, so batches are written until some bytes are complete.
            if !written.is_empty() {
                return Ok(written);
            }
        }
        match self.writer.take() {
            Some(writer) => writer.finish(),
            None => Ok(Vec::new()),
        }
    }
}

impl Iterator for Chunks {
    type Item = Result<Vec<u8>, FormatError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.write() {
            Ok(chunk) if chunk.is_empty() => None,
            chunk => Some(chunk),
        }
    }
}

/// The `csv` crate writes an empty text like null, so that a reader cannot distinguish them.
fn csv(batch: &RecordBatch, header: bool) -> Vec<u8> {
    let mut written = Vec::new();
    let schema = batch.schema();
    if header {
        let names = schema.fields().iter();
        put_record(&mut written, names.map(|field| Some(field.name().clone())));
    }
    for row in 0..batch.num_rows() {
        let cells = batch.columns().iter();
        put_record(&mut written, cells.map(|column| cell(column.as_ref(), row)));
    }
    written
}

/// Writes a record, which ends as RFC 4180 has it: spreadsheets expect it, other readers accept it.
fn put_record(written: &mut Vec<u8>, cells: impl ExactSizeIterator<Item = Option<String>>) {
    // An empty line is no record for most readers, so a single null is a pair of quotation marks as well.
    let is_single = cells.len() == 1;
    for (index, cell) in cells.enumerate() {
        if index > 0 {
            written.push(b',');
        }
        match cell {
            None if is_single => written.extend(b"\"\""),
            None => {}
            Some(text) => put_field(written, &text),
        }
    }
    written.extend(b"\r\n");
}

fn put_field(written: &mut Vec<u8>, text: &str) {
    let is_quoted = |byte: u8| matches!(byte, b',' | b'"' | b'\r' | b'\n');
    if !text.is_empty() && !text.bytes().any(is_quoted) {
        written.extend(text.as_bytes());
        return;
    }
    written.push(b'"');
    for (index, part) in text.split('"').enumerate() {
        if index > 0 {
            written.extend(b"\"\"");
        }
        written.extend(part.as_bytes());
    }
    written.push(b'"');
}

/// Formats a value as a CSV field; `None` for null.
fn cell(column: &dyn Array, row: usize) -> Option<String> {
    if column.is_null(row) {
        return None;
    }
    Some(match column.data_type() {
        ArrowType::Int64 => column.as_primitive::<Int64Type>().value(row).to_string(),
        // The shortest digits that read back as the same number, with an exponent if that is shorter.
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
    })
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
    use crate::read::{ReadOptions, open_table};

    fn read_arrow(bytes: Vec<u8>) -> Vec<RecordBatch> {
        let reader = StreamReader::try_new(Cursor::new(bytes), None).unwrap();
        reader.map(Result::unwrap).collect()
    }

    fn read_parquet(bytes: Vec<u8>) -> Vec<RecordBatch> {
        let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes)).unwrap();
        reader.build().unwrap().map(Result::unwrap).collect()
    }

    fn written(frame: Frame, format: Format) -> Vec<u8> {
        let chunks: Vec<Vec<u8>> = frame.encode(format).unwrap().map(Result::unwrap).collect();
        chunks.concat()
    }

    /// A column of every type, each with a null.
    fn every_type() -> Frame {
        let columns = [
            ("text", Values::Text(vec![Some("a,\"b\"\n".into()), None])),
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
        let columns = columns.map(|(name, values)| (name.to_owned(), values));
        Frame::of_columns(columns.into(), 2).unwrap()
    }

    /// The same two rows as the result of a query.
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
        Frame::of_json_rows(
            &names.map(str::to_owned),
            &types,
            rows.map(str::to_owned).into(),
        )
        .unwrap()
    }

    #[test]
    fn columns_and_rows_make_the_same_frame() {
        assert_eq!(every_type().batches, every_type_by_rows().batches);
    }

    #[test]
    fn arrow_and_parquet_round_trip() {
        let frame = every_type();
        let arrow = read_arrow(written(frame.clone(), Format::ArrowStream));
        assert_eq!(arrow, frame.batches);
        let parquet = read_parquet(written(frame.clone(), Format::Parquet));
        let ([read], [was]) = (parquet.as_slice(), frame.batches.as_slice()) else {
            panic!("{} batches", parquet.len());
        };
        assert_eq!(read.columns(), was.columns());
        assert_eq!(read.schema().fields(), was.schema().fields());
    }

    #[test]
    fn csv_has_a_header_line_and_empty_nulls() {
        let text = String::from_utf8(written(every_type(), Format::Csv)).unwrap();
        assert_eq!(
            text,
            "text,integer,float,boolean,datetime,date,uuid,json\r\n\
             \"a,\"\"b\"\"\n\",-9223372036854775808,1e-7,true,1969-12-31T23:59:59.5Z,2024-02-29,\
             00000000-0000-0000-0000-000000000000,\"{\"\"a\"\":[1]}\"\r\n\
             ,,,,,,,\r\n"
        );
    }

    #[test]
    fn csv_that_is_read_again_is_equal() {
        let texts = ["", " ", "a,b", "\"", "x\r\ny", "NA", "null", "\"\"", "z"];
        let mut values: Vec<Option<_>> = texts.iter().map(|it| Some((*it).into())).collect();
        values.insert(1, None);
        let rows = values.len();
        let keys: Vec<Option<i64>> = (0..).take(rows).map(Some).collect();
        let columns = vec![
            ("key".to_owned(), Values::Integer(keys)),
            ("note".to_owned(), Values::Text(values.clone())),
            ("n".to_owned(), Values::Integer(vec![None; rows])),
        ];
        let bytes = written(Frame::of_columns(columns, rows).unwrap(), Format::Csv);
        assert!(bytes.starts_with(b"key,note,n\r\n0,\"\",\r\n1,,\r\n2, ,\r\n"));
        let source = Box::new(Cursor::new(bytes));
        let mut table = open_table(source, &ReadOptions::default(), 100).unwrap();
        assert_eq!(table.doubts(), []);
        let part = table.next_part().unwrap().unwrap();
        assert_eq!(part[1], Values::Text(values));
        // A null is no blank line, which readers skip.
        let single = vec![("n".to_owned(), Values::Integer(vec![None, Some(1)]))];
        let bytes = written(Frame::of_columns(single, 2).unwrap(), Format::Csv);
        assert_eq!(bytes, b"n\r\n\"\"\r\n1\r\n");
    }

    #[test]
    fn an_empty_result_is_a_table_without_rows() {
        let (names, types) = (["n".to_owned()], [DataType::Integer]);
        let frame = Frame::of_json_rows(&names, &types, Vec::new()).unwrap();
        assert_eq!(written(frame.clone(), Format::Csv), b"n\r\n");
        let arrow = read_arrow(written(frame.clone(), Format::ArrowStream));
        assert_eq!(arrow.iter().map(RecordBatch::num_rows).sum::<usize>(), 0);
        let parquet = read_parquet(written(frame, Format::Parquet));
        assert_eq!(parquet.iter().map(RecordBatch::num_rows).sum::<usize>(), 0);
    }

    #[test]
    fn a_value_that_its_type_cannot_hold_is_an_error() {
        let (names, types) = (["at".to_owned()], [DataType::Datetime]);
        let rows = vec!["[\"infinity\"]".to_owned()];
        let error = Frame::of_json_rows(&names, &types, rows).unwrap_err();
        assert!(error.to_string().contains("column at: \"infinity\""));
        let empty = Frame::of_json_rows(&[], &[], vec!["[]".to_owned()]).unwrap();
        for (format, name) in [(Format::Parquet, "Parquet"), (Format::Csv, "CSV")] {
            let error = empty.clone().encode(format).map(drop).unwrap_err();
            assert!(matches!(error, FormatError::Unrepresentable(_)));
            assert!(error.to_string().contains(name), "{error}");
        }
        assert!(empty.encode(Format::ArrowStream).is_ok());
    }

    #[test]
    fn a_long_frame_is_encoded_in_several_pieces() {
        let length = GROUP_ROWS * 2 + 5;
        let numbers: Vec<Option<i64>> = (0..).take(length).map(Some).collect();
        let columns = vec![("n".to_owned(), Values::Integer(numbers))];
        let frame = Frame::of_columns(columns, length).unwrap();
        for (format, most) in [
            (Format::Csv, BATCH * 10),
            (Format::ArrowStream, BATCH * 10),
            (Format::Parquet, GROUP_ROWS * 10),
        ] {
            let chunks: Vec<Vec<u8>> = frame
                .clone()
                .encode(format)
                .unwrap()
                .map(Result::unwrap)
                .collect();
            assert!(chunks.len() > 2, "{format:?}: {} pieces", chunks.len());
            assert!(chunks.iter().all(|chunk| chunk.len() < most), "{format:?}");
            let whole = chunks.concat();
            let read: Vec<i64> = match format {
                Format::Csv => String::from_utf8(whole)
                    .unwrap()
                    .lines()
                    .skip(1)
                    .map(|line| line.parse().unwrap())
                    .collect(),
                Format::ArrowStream => integers(&read_arrow(whole)),
                Format::Parquet => integers(&read_parquet(whole)),
            };
            assert!(read.into_iter().eq((0..).take(length)), "{format:?}");
        }
    }

    fn integers(batches: &[RecordBatch]) -> Vec<i64> {
        let columns = batches.iter().map(|batch| batch.column(0));
        columns
            .flat_map(|column| column.as_primitive::<Int64Type>().values().to_vec())
            .collect()
    }
}
