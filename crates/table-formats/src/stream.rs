//! [`TableWriter`]: encoding of tables of any length in constant memory.

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use labdata_domain::{data::read::TableColumn, scalar::Values};

use crate::{
    Encoding, FormatError, columns,
    encode::{BatchWriter, neutralized_array},
    frame::{BATCH, described, schema},
};

/// Number of rows from which they are a batch of their own.
const ENOUGH_ROWS: usize = BATCH / 2;

/// Stored size in bytes from which rows are a batch of their own.
const ENOUGH_BYTES: usize = 1 << 20;

/// Encodes a table part by part. The types of columns are those of a [`Frame`](crate::Frame). Small
/// parts are joined: a batch costs more than its rows if they are few.
pub struct TableWriter {
    columns: Vec<TableColumn>,
    encoding: Encoding,
    schema: SchemaRef,
    writer: BatchWriter,
    /// Rows that are no batch yet.
    waiting: Vec<Values>,
    rows: usize,
    bytes: usize,
}

impl TableWriter {
    /// Begins a table with these columns. Labels and units become metadata of Arrow's and Parquet's
    /// fields.
    ///
    /// # Errors
    /// [`FormatError::Unrepresentable`] for Parquet and CSV without columns.
    pub fn new(
        columns: Vec<TableColumn>,
        encoding: impl Into<Encoding>,
    ) -> Result<Self, FormatError> {
        let encoding = encoding.into();
        let waiting = empty(&columns);
        let types = columns.iter().zip(&waiting).map(|(column, values)| {
            let array = columns::array(&column.name, values, 0..0)?;
            Ok(array.data_type().clone())
        });
        let types = types.collect::<Result<Vec<_>, FormatError>>()?;
        let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
        let schema = described(&schema(&names, types), &columns);
        let writer = BatchWriter::new(SchemaRef::clone(&schema), encoding.format)?;
        Ok(Self {
            columns,
            encoding,
            schema,
            writer,
            waiting,
            rows: 0,
            bytes: 0,
        })
    }

    /// Writes rows, given as columns of equal length with their stored size. Returns the bytes that are
    /// complete, which may be none.
    ///
    /// # Errors
    /// [`FormatError::Unrepresentable`] for a point in time whose microseconds do not fit into 64 bits;
    /// [`FormatError::Failed`] if the columns do not fit the table.
    pub fn write(
        &mut self,
        values: Vec<Values>,
        rows: usize,
        bytes: usize,
    ) -> Result<Vec<u8>, FormatError> {
        if values.len() != self.columns.len() || values.iter().any(|it| it.len() != rows) {
            return Err(FormatError::Failed("rows do not fit the table".to_owned()));
        }
        // A large part becomes the batch without a copy.
        if self.rows == 0 {
            self.waiting = values;
        } else {
            for (waiting, values) in self.waiting.iter_mut().zip(values) {
                if !waiting.append(values) {
                    return Err(FormatError::Failed("a column has another type".to_owned()));
                }
            }
        }
        self.rows += rows;
        self.bytes += bytes;
        if self.rows >= ENOUGH_ROWS || self.bytes >= ENOUGH_BYTES {
            self.flush()
        } else {
            Ok(Vec::new())
        }
    }

    fn flush(&mut self) -> Result<Vec<u8>, FormatError> {
        let mut written = Vec::new();
        for start in (0..self.rows).step_by(BATCH) {
            let part = start..self.rows.min(start + BATCH);
            let arrays = self.columns.iter().zip(&self.waiting);
            let arrays = arrays.map(|(column, values)| {
                let array = columns::array(&column.name, values, part.clone())?;
                let is_changed = self.encoding.changes_texts() && matches!(values, Values::Text(_));
                Ok(if is_changed {
                    neutralized_array(&array)
                } else {
                    array
                })
            });
            let arrays = arrays.collect::<Result<Vec<ArrayRef>, FormatError>>()?;
            // A batch without columns cannot derive its number of rows.
            let options = RecordBatchOptions::new().with_row_count(Some(part.len()));
            let schema = SchemaRef::clone(&self.schema);
            let batch = RecordBatch::try_new_with_options(schema, arrays, &options)?;
            let mut bytes = self.writer.write(&batch)?;
            if written.is_empty() {
                written = bytes;
            } else {
                written.append(&mut bytes);
            }
        }
        self.waiting = empty(&self.columns);
        (self.rows, self.bytes) = (0, 0);
        Ok(written)
    }

    /// Ends the table; returns the last bytes.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn finish(mut self) -> Result<Vec<u8>, FormatError> {
        let mut written = self.flush()?;
        written.append(&mut self.writer.finish()?);
        Ok(written)
    }
}

fn empty(columns: &[TableColumn]) -> Vec<Values> {
    let types = columns.iter().map(|column| column.data_type);
    types.map(|it| Values::with_capacity(it, 0)).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use arrow_array::cast::AsArray as _;
    use arrow_ipc::reader::StreamReader;
    use bytes::Bytes;
    use labdata_domain::scalar::DataType;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    use super::*;
    use crate::Format;

    fn columns() -> Vec<TableColumn> {
        vec![
            TableColumn::new("sample", DataType::String),
            TableColumn {
                label: Some("Optical density".to_owned()),
                unit: Some("1".to_owned()),
                ..TableColumn::new("od", DataType::Float)
            },
        ]
    }

    fn part(sample: &str, rows: usize) -> Vec<Values> {
        vec![
            Values::Text(vec![Some(sample.into()); rows]),
            Values::Float((0..rows).map(|row| Some(float(row))).collect()),
        ]
    }

    fn float(row: usize) -> f64 {
        f64::from(u32::try_from(row).unwrap()).sqrt()
    }

    fn written(parts: &[usize], format: Format) -> Vec<Vec<u8>> {
        let mut writer = TableWriter::new(columns(), format).unwrap();
        let mut chunks = Vec::new();
        for rows in parts {
            chunks.push(writer.write(part("a", *rows), *rows, 0).unwrap());
        }
        chunks.push(writer.finish().unwrap());
        chunks
    }

    #[test]
    fn small_parts_are_joined_and_large_ones_divided() {
        let sizes = |parts: &[usize]| {
            let bytes = written(parts, Format::ArrowStream).concat();
            let reader = StreamReader::try_new(Cursor::new(bytes), None).unwrap();
            let batches = reader.map(|batch| batch.unwrap().num_rows());
            batches.collect::<Vec<_>>()
        };
        assert_eq!(sizes(&[10; 100]), [1000]);
        assert_eq!(sizes(&[10, ENOUGH_ROWS, 1]), [ENOUGH_ROWS + 10, 1]);
        assert_eq!(sizes(&[ENOUGH_ROWS, 1]), [ENOUGH_ROWS, 1]);
        assert_eq!(sizes(&[BATCH + 1, 0]), [BATCH, 1]);
        assert_eq!(sizes(&[]), [0_usize; 0]);
    }

    #[test]
    fn a_table_without_rows_has_its_columns_in_every_format() {
        assert_eq!(written(&[], Format::Csv).concat(), b"sample,od\r\n");
        let parquet = Bytes::from(written(&[], Format::Parquet).concat());
        let read = ParquetRecordBatchReaderBuilder::try_new(parquet).unwrap();
        assert_eq!(read.schema().fields().len(), 2);
    }

    #[test]
    fn fields_of_arrow_and_parquet_bear_label_and_unit() {
        let arrow = written(&[1], Format::ArrowStream).concat();
        let arrow = StreamReader::try_new(Cursor::new(arrow), None).unwrap();
        let parquet = Bytes::from(written(&[1], Format::Parquet).concat());
        let parquet = ParquetRecordBatchReaderBuilder::try_new(parquet).unwrap();
        for schema in [arrow.schema(), SchemaRef::clone(parquet.schema())] {
            let metadata = |name: &str| schema.field_with_name(name).unwrap().metadata().clone();
            let of = |key: &str| metadata("od").get(key).cloned().unwrap_or_default();
            assert_eq!(
                (of("label").as_str(), of("unit").as_str()),
                ("Optical density", "1")
            );
            assert!(!metadata("sample").contains_key("label"));
        }
    }

    #[test]
    fn lines_have_one_header() {
        let text = String::from_utf8(written(&[ENOUGH_ROWS, 1], Format::Csv).concat()).unwrap();
        assert_eq!(text.matches("sample").count(), 1);
        assert_eq!(text.lines().count(), ENOUGH_ROWS + 2);
    }

    #[test]
    fn what_is_written_leaves_the_memory() {
        for format in [Format::Csv, Format::ArrowStream, Format::Parquet] {
            let rows = 64 * BATCH;
            let chunks = written(&vec![BATCH; rows / BATCH], format);
            let whole: usize = chunks.iter().map(Vec::len).sum();
            let largest = chunks.iter().map(Vec::len).max().unwrap();
            assert!(largest * 2 < whole, "{format:?}: {largest} of {whole}");
        }
    }

    #[test]
    fn formulas_in_texts_are_neutralized_in_csv_alone_and_on_request() {
        let neutral = |format| Encoding {
            format,
            neutralize_formulas: true,
        };
        for (encoding, expected) in [
            (neutral(Format::Csv), "'=a"),
            (neutral(Format::ArrowStream), "=a"),
            (Format::Csv.into(), "=a"),
        ] {
            let format = encoding.format;
            let mut writer = TableWriter::new(columns(), encoding).unwrap();
            let values = vec![
                Values::Text(vec![Some("=a".into())]),
                Values::Float(vec![Some(-1.5)]),
            ];
            writer.write(values, 1, 0).unwrap();
            let bytes = writer.finish().unwrap();
            if format == Format::Csv {
                let text = String::from_utf8(bytes).unwrap();
                assert_eq!(text, format!("sample,od\r\n{expected},-1.5\r\n"));
            } else {
                let reader = StreamReader::try_new(Cursor::new(bytes), None).unwrap();
                let batch = reader.last().unwrap().unwrap();
                let texts = batch.column(0).as_string::<i32>().value(0).to_owned();
                assert_eq!(texts, expected);
            }
        }
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let mut writer = TableWriter::new(columns(), Format::Csv).unwrap();
        let refused = writer.write(part("a", 2), 3, 0).unwrap_err();
        assert_eq!(refused.to_string(), "rows do not fit the table");
        assert!(writer.write(Vec::new(), 0, 0).is_err());
        writer.write(part("a", 1), 1, 0).unwrap();
        let swapped = part("a", 1).into_iter().rev().collect();
        assert!(writer.write(swapped, 1, 0).is_err());
    }
}
