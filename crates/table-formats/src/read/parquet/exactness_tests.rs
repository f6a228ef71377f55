//! Values of which a column of another type would lose digits.

use std::{io::Cursor, sync::Arc};

use arrow_array::{
    ArrayRef, Decimal128Array, Int64Array, RecordBatch, Time64NanosecondArray,
    TimestampNanosecondArray,
};
use labdata_domain::{
    data::write::FileCell,
    scalar::{DataType, Scalar},
};
use parquet::{
    arrow::ArrowWriter,
    data_type::{Int96, Int96Type},
    file::{properties::WriterProperties, writer::SerializedFileWriter},
    schema::parser::parse_message_type,
};
use time::macros::datetime;

use crate::read::{ReadOptions, ReadTable, open_table};

fn open(bytes: Vec<u8>, timezone: Option<&str>) -> ReadTable {
    let mut options = ReadOptions::default();
    if let Some(timezone) = timezone {
        options.set_field("timezone", timezone).unwrap();
    }
    open_table(Box::new(Cursor::new(bytes)), &options, 100).unwrap()
}

fn written(array: ArrayRef) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter([("v", array)]).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

/// A file with one time of 96 bits, as old writers make it.
fn written_96(nanos: u64, day: u32) -> Vec<u8> {
    let schema = parse_message_type("message m { required int96 v; }").unwrap();
    let properties = Arc::new(WriterProperties::default());
    let mut writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), properties).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let mut time = Int96::new();
    let (low, high) = (nanos & 0xffff_ffff, nanos >> 32);
    time.set_data(low.try_into().unwrap(), high.try_into().unwrap(), day);
    column
        .typed::<Int96Type>()
        .write_batch(&[time], None, None)
        .unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.into_inner().unwrap()
}

/// The first cell in a column of a type.
fn cell(mut table: ReadTable, data_type: DataType) -> FileCell {
    table.read_as(&[Some(data_type)]);
    let row = table.next_row().unwrap().unwrap();
    row.cells[0].clone().unwrap()
}

#[test]
fn an_integer_that_no_float_holds_is_a_problem_of_a_float_column() {
    let decimal = |unscaled: i128, scale| -> ArrayRef {
        let array = Decimal128Array::from(vec![unscaled]);
        Arc::new(array.with_precision_and_scale(20, scale).unwrap())
    };
    let integers = |number: i64| -> ArrayRef { Arc::new(Int64Array::from(vec![number])) };
    for (array, is_kept) in [
        (decimal(9_007_199_254_740_993, 0), false),
        (decimal(90_071_992_547_409_930, 1), false),
        (decimal(9_007_199_254_740_992, 0), true),
        (integers(9_007_199_254_740_993), false),
        (integers(-9_007_199_254_740_993), false),
        (integers(9_007_199_254_740_994), true),
    ] {
        let name = format!("{array:?}");
        let value = cell(open(written(array), None), DataType::Float).to_scalar(DataType::Float);
        assert_eq!(value.is_ok(), is_kept, "{name}: {value:?}");
    }
}

#[test]
fn a_time_of_96_bits_has_no_offset() {
    // 2026-03-01, at 12:00.
    let bytes = || written_96(43_200_000_000_000, 2_461_101);
    let table = open(bytes(), None);
    assert_eq!(table.doubts()[0].code, "timezone");
    assert_eq!(table.columns()[0].data_type, DataType::Text);
    let local = cell(table, DataType::Datetime);
    assert_eq!(local, FileCell::LocalTime(datetime!(2026-03-01 12:00)));
    assert!(local.to_scalar(DataType::Datetime).is_err());
    let zoned = open(bytes(), Some("Europe/Berlin"));
    assert_eq!(zoned.columns()[0].data_type, DataType::Datetime);
    let at = cell(zoned, DataType::Datetime).to_scalar(DataType::Datetime);
    assert_eq!(at, Ok(Scalar::Datetime(datetime!(2026-03-01 11:00 UTC))));
    // More than a day, and a year of five digits.
    for bytes in [
        written_96(86_400_000_000_000, 2_461_101),
        written_96(0, u32::MAX / 2),
    ] {
        assert!(open(bytes, None).next_part().is_err());
    }
}

#[test]
fn nanoseconds_are_kept_in_texts_and_a_problem_of_datetimes() {
    const AT: i64 = 1_772_366_400_000_000_000;
    let local = |nanos: i64| -> ArrayRef { Arc::new(TimestampNanosecondArray::from(vec![nanos])) };
    let instant = |nanos: i64| -> ArrayRef {
        Arc::new(TimestampNanosecondArray::from(vec![nanos]).with_timezone("UTC"))
    };
    for (array, text, is_kept) in [
        (
            instant(AT + 123_456_789),
            "2026-03-01T12:00:00.123456789Z",
            false,
        ),
        (
            instant(AT + 123_456_000),
            "2026-03-01T12:00:00.123456Z",
            true,
        ),
        (local(AT + 1), "2026-03-01T12:00:00.000000001", false),
        (local(AT + 1_000), "2026-03-01T12:00:00.000001", true),
    ] {
        let bytes = written(array);
        let shown = cell(open(bytes.clone(), None), DataType::Text);
        assert_eq!(shown.to_string(), text);
        let at = cell(open(bytes, Some("UTC")), DataType::Datetime);
        let at = at.to_scalar(DataType::Datetime);
        assert_eq!(at.is_ok(), is_kept, "{text}: {at:?}");
    }
    for (nanos, text) in [
        (30_600_000_000_001, "08:30:00.000000001"),
        (30_600_250_000_000, "08:30:00.25"),
        (86_399_999_999_999, "23:59:59.999999999"),
    ] {
        let array: ArrayRef = Arc::new(Time64NanosecondArray::from(vec![nanos]));
        let shown = cell(open(written(array), None), DataType::Text);
        assert_eq!(shown, FileCell::Text(text.to_owned()));
    }
}
