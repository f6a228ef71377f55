//! Writing of snapshots: Parquet of any length in constant memory, with a profile of each column.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, RecordBatch,
    cast::AsArray,
    types::{Date32Type, Float64Type, Int64Type, TimestampMicrosecondType},
};
use arrow_schema::{DataType as ArrowType, Field, Schema, SchemaRef};
use labdata_domain::{
    models::{ColumnProfiler, DatasetColumn},
    scalar::{ComparableValue, DataType, Values},
};
use parquet::{
    arrow::ArrowWriter,
    basic::Compression,
    file::properties::{EnabledStatistics, WriterProperties},
};

use crate::{FormatError, columns, frame::BATCH, rows};

/// Maximum number of rows of a row group.
const GROUP_ROWS: usize = 1 << 20;

/// Maximum size of a row group in bytes, as far as the writer can tell. A row group is in memory until
/// it is complete.
const GROUP_BYTES: usize = 32 << 20;

/// Writes a table as Parquet, part by part. The types of columns are those of a [`Frame`](crate::Frame).
pub struct SnapshotWriter {
    columns: Vec<(String, DataType)>,
    schema: SchemaRef,
    writer: ArrowWriter<Vec<u8>>,
    profilers: Vec<ColumnProfiler>,
    row_count: u64,
}

/// End of a snapshot.
#[derive(Debug)]
pub struct WrittenSnapshot {
    /// The last bytes of the Parquet file.
    pub rest: Vec<u8>,
    /// The columns with their profiles.
    pub columns: Vec<DatasetColumn>,
    /// Number of rows.
    pub row_count: u64,
}

impl SnapshotWriter {
    /// Begins a table with these columns, which have distinct names.
    ///
    /// # Errors
    /// [`FormatError::Failed`].
    pub fn new(columns: Vec<(String, DataType)>) -> Result<Self, FormatError> {
        let fields = columns.iter().map(|(name, data_type)| {
            // An empty array has the Arrow type that all later ones have.
            let empty = columns::array(name, &Values::with_capacity(*data_type, 0), 0..0)?;
            Ok(Field::new(name, empty.data_type().clone(), true))
        });
        let fields: Vec<Field> = fields.collect::<Result<_, FormatError>>()?;
        let schema = Arc::new(Schema::new(fields));
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            // Per row group only: the default, per page, adds an index to the file.
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .set_max_row_group_bytes(Some(GROUP_BYTES))
            .build();
        let writer = ArrowWriter::try_new(Vec::new(), Arc::clone(&schema), Some(properties))?;
        let profilers = columns
            .iter()
            .map(|(_, data_type)| ColumnProfiler::new(*data_type));
        Ok(Self {
            profilers: profilers.collect(),
            schema,
            writer,
            row_count: 0,
            columns,
        })
    }

    /// Writes rows, each the text of a JSON array with one value per column. Returns the bytes that are
    /// complete, which may be none.
    ///
    /// # Errors
    /// [`FormatError::Unrepresentable`] for a value that its column's type cannot hold, such as the
    /// datetime `infinity`.
    pub fn write_json_rows(&mut self, rows: Vec<String>) -> Result<Vec<u8>, FormatError> {
        let (names, types): (Vec<String>, Vec<DataType>) = self.columns.iter().cloned().unzip();
        let mut rows = rows.into_iter();
        // In batches, so that the JSON texts are freed while the arrays grow.
        while rows.len() > 0 {
            let length = rows.len().min(BATCH);
            let arrays = rows::arrays(&names, &types, rows.by_ref().take(length))?;
            self.write(arrays, length)?;
        }
        Ok(std::mem::take(self.writer.inner_mut()))
    }

    /// Writes rows, given as columns of equal length. Returns the bytes that are complete, which may be
    /// none.
    ///
    /// # Errors
    /// [`FormatError::Unrepresentable`] for a point in time whose microseconds do not fit into 64 bits;
    /// [`FormatError::Failed`] if the columns do not fit the table.
    pub fn write_values(&mut self, values: &[Values]) -> Result<Vec<u8>, FormatError> {
        let length = values.first().map_or(0, Values::len);
        for start in (0..length).step_by(BATCH) {
            let part = start..length.min(start + BATCH);
            let arrays = self.columns.iter().zip(values);
            let arrays =
                arrays.map(|((name, _), values)| columns::array(name, values, part.clone()));
            let arrays = arrays.collect::<Result<Vec<ArrayRef>, FormatError>>()?;
            self.write(arrays, part.len())?;
        }
        Ok(std::mem::take(self.writer.inner_mut()))
    }

    fn write(&mut self, arrays: Vec<ArrayRef>, length: usize) -> Result<(), FormatError> {
        for (array, profiler) in arrays.iter().zip(&mut self.profilers) {
            profile(array, profiler);
        }
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays)?;
        self.writer.write(&batch)?;
        let length = u64::try_from(length).unwrap_or(u64::MAX);
        self.row_count = self.row_count.saturating_add(length);
        Ok(())
    }

    /// Returns the number of rows that were written.
    #[must_use]
    pub const fn row_count(&self) -> u64 {
        self.row_count
    }

    /// Ends the table.
    ///
    /// # Errors
    /// [`FormatError::Failed`].
    pub fn finish(self) -> Result<WrittenSnapshot, FormatError> {
        let columns = self.columns.into_iter().zip(self.profilers);
        Ok(WrittenSnapshot {
            rest: self.writer.into_inner()?,
            columns: columns
                .map(|((name, data_type), profiler)| DatasetColumn {
                    name,
                    data_type,
                    profile: profiler.finish(),
                })
                .collect(),
            row_count: self.row_count,
        })
    }
}

/// Counts the values of an array. Points in time and dates are compared as the numbers that Arrow
/// stores.
fn profile(array: &ArrayRef, profiler: &mut ColumnProfiler) {
    profiler.add_nulls(u64::try_from(array.null_count()).unwrap_or(u64::MAX));
    if !profiler.counts_values() {
        return;
    }
    let mut add = |value| profiler.add(value);
    match array.data_type() {
        ArrowType::Int64 => {
            let values = array.as_primitive::<Int64Type>().iter().flatten();
            values.for_each(|number| add(ComparableValue::Integer(number)));
        }
        ArrowType::Float64 => {
            let values = array.as_primitive::<Float64Type>().iter().flatten();
            // Zero has one sign.
            values.for_each(|number| add(ComparableValue::Float((number + 0.0).to_bits())));
        }
        ArrowType::Boolean => {
            let values = array.as_boolean().iter().flatten();
            values.for_each(|flag| add(ComparableValue::Boolean(flag)));
        }
        ArrowType::Timestamp(..) => {
            let values = array.as_primitive::<TimestampMicrosecondType>();
            let values = values.iter().flatten();
            values.for_each(|micros| add(ComparableValue::Integer(micros)));
        }
        ArrowType::Date32 => {
            let values = array.as_primitive::<Date32Type>().iter().flatten();
            values.for_each(|days| add(ComparableValue::Integer(days.into())));
        }
        _ => {
            let values = array.as_string::<i32>().iter().flatten();
            values.for_each(|text| add(ComparableValue::Text(text)));
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use labdata_domain::models::ColumnProfile;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use serde_json::json;
    use time::macros::{date, datetime};

    use super::*;

    fn read(bytes: Vec<u8>) -> (usize, Vec<RecordBatch>) {
        let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes)).unwrap();
        let groups = reader.metadata().num_row_groups();
        let batches = reader.with_batch_size(BATCH).build().unwrap();
        (groups, batches.map(Result::unwrap).collect())
    }

    fn names(types: &[DataType]) -> Vec<(String, DataType)> {
        let named = types.iter().enumerate();
        named.map(|(n, of)| (format!("c{n}"), *of)).collect()
    }

    #[test]
    fn rows_and_columns_make_the_same_snapshot() {
        let types = [
            DataType::Text,
            DataType::Integer,
            DataType::Float,
            DataType::Boolean,
            DataType::Datetime,
            DataType::Date,
            DataType::Json,
        ];
        let mut by_rows = SnapshotWriter::new(names(&types)).unwrap();
        let rows = [
            r#"["a",1,0.0,true,"2026-03-01T12:00:00Z","2026-03-01",{"a":[1]}]"#,
            r#"["a",2,-0.0,null,"2026-03-01T12:00:00Z","2026-03-02",null]"#,
        ];
        let mut first = by_rows
            .write_json_rows(rows.map(str::to_owned).into())
            .unwrap();
        let mut by_columns = SnapshotWriter::new(names(&types)).unwrap();
        let at = Some(datetime!(2026-03-01 12:00 UTC));
        let values = [
            Values::Text(vec![Some("a".into()), Some("a".into())]),
            Values::Integer(vec![Some(1), Some(2)]),
            Values::Float(vec![Some(0.0), Some(-0.0)]),
            Values::Boolean(vec![Some(true), None]),
            Values::Datetime(vec![at, at]),
            Values::Date(vec![
                Some(date!(2026 - 03 - 01)),
                Some(date!(2026 - 03 - 02)),
            ]),
            Values::Json(vec![Some(json!({"a": [1]})), None]),
        ];
        let mut second = by_columns.write_values(&values).unwrap();
        let (by_rows, by_columns) = (by_rows.finish().unwrap(), by_columns.finish().unwrap());
        assert_eq!(by_rows.columns, by_columns.columns);
        assert_eq!((by_rows.row_count, by_columns.row_count), (2, 2));
        first.extend(by_rows.rest);
        second.extend(by_columns.rest);
        assert_eq!(read(first), read(second));
        let profiles = by_rows.columns.iter().map(|column| column.profile);
        let of = |nulls, distinct| ColumnProfile { nulls, distinct };
        assert_eq!(
            profiles.collect::<Vec<_>>(),
            [
                of(0, Some(1)),
                of(0, Some(2)),
                of(0, Some(1)),
                of(1, Some(1)),
                of(0, Some(1)),
                of(0, Some(2)),
                of(1, None),
            ]
        );
    }

    #[test]
    fn a_row_group_of_small_values_has_a_limit_of_rows() {
        let mut writer = SnapshotWriter::new(names(&[DataType::Boolean])).unwrap();
        let values = |rows| [Values::Boolean(vec![Some(true); rows])];
        let mut bytes = writer.write_values(&values(GROUP_ROWS)).unwrap();
        bytes.extend(writer.write_values(&values(1)).unwrap());
        bytes.extend(writer.finish().unwrap().rest);
        assert_eq!(read(bytes).0, 2);
    }

    #[test]
    fn a_long_table_has_row_groups_that_are_written_as_they_fill() {
        let mut writer = SnapshotWriter::new(names(&[DataType::Text])).unwrap();
        let mut bytes = Vec::new();
        let (mut chunks, mut rows) = (0, 0_u64);
        // Texts that neither a dictionary nor Snappy makes smaller.
        let mut state = 1_u64;
        let mut text = || {
            let digits = std::iter::repeat_with(|| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                format!("{state:016x}")
            });
            Some(digits.take(64).collect::<String>().into())
        };
        while chunks < 2 {
            let values: Vec<_> = (0..2_048).map(|_| text()).collect();
            rows += 2_048;
            let written = writer.write_values(&[Values::Text(values)]).unwrap();
            chunks += usize::from(!written.is_empty());
            bytes.extend(written);
            assert!(rows < 1 << 20, "no row group is ever complete");
        }
        let written = writer.finish().unwrap();
        assert_eq!(written.row_count, rows);
        assert_eq!(written.columns[0].profile.distinct, None);
        bytes.extend(written.rest);
        let (groups, batches) = read(bytes);
        assert!(groups >= 2, "{groups}");
        let found: usize = batches.iter().map(RecordBatch::num_rows).sum();
        assert_eq!(u64::try_from(found).unwrap(), rows);
    }

    #[test]
    fn a_snapshot_without_rows_has_columns() {
        let written = SnapshotWriter::new(names(&[DataType::Date])).unwrap();
        let written = written.finish().unwrap();
        assert_eq!((written.row_count, written.columns.len()), (0, 1));
        let (_, batches) = read(written.rest);
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 0);
    }
}
