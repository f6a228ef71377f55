//! Types of columns, as different writers declare them.

use std::collections::HashMap;

use arrow_array::{DurationMicrosecondArray, DurationMillisecondArray, DurationSecondArray};
use arrow_schema::{Field, Schema};
use parquet::{
    column::writer::ColumnWriter,
    data_type::{ByteArray, Int96},
    file::writer::SerializedFileWriter,
    schema::parser::parse_message_type,
};

use super::*;

/// A file of one column, declared in the notation of Parquet. Decimals are 8 bytes, and times of 96 bits
/// are days.
fn declared(column: &str, numbers: &[i64]) -> Vec<u8> {
    let schema = parse_message_type(&format!("message table {{ {column}; }}")).unwrap();
    let mut file = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::default()).unwrap();
    if numbers.is_empty() {
        return file.into_inner().unwrap();
    }
    let mut group = file.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let narrow = || numbers.iter().map(|number| i32::try_from(*number).unwrap());
    let bytes = || {
        let bytes = numbers.iter().map(|number| number.to_be_bytes().to_vec());
        bytes.map(ByteArray::from)
    };
    let written = match column.untyped() {
        ColumnWriter::Int32ColumnWriter(of) => {
            of.write_batch(&narrow().collect::<Vec<_>>(), None, None)
        }
        ColumnWriter::Int64ColumnWriter(of) => of.write_batch(numbers, None, None),
        ColumnWriter::Int96ColumnWriter(of) => {
            let days = narrow().map(|day| Int96::from(vec![0, 0, day.cast_unsigned()]));
            of.write_batch(&days.collect::<Vec<_>>(), None, None)
        }
        ColumnWriter::ByteArrayColumnWriter(of) => {
            of.write_batch(&bytes().collect::<Vec<_>>(), None, None)
        }
        ColumnWriter::FixedLenByteArrayColumnWriter(of) => {
            of.write_batch(&bytes().map(Into::into).collect::<Vec<_>>(), None, None)
        }
        _ => unreachable!("columns of these tests hold numbers"),
    };
    assert_eq!(written.unwrap(), numbers.len());
    column.close().unwrap();
    group.close().unwrap();
    file.into_inner().unwrap()
}

fn text(text: &str) -> Values {
    Values::Text(vec![Some(text.into())])
}

#[test]
fn numbers_are_read_as_their_declaration_says() {
    for (column, number, expected) in [
        ("int32 v", -1, -1),
        ("int64 v", i64::MIN, i64::MIN),
        ("int32 v (INT_8)", -1, -1),
        ("int64 v (INT_64)", -1, -1),
        ("int32 v (INTEGER(16,true))", -1, -1),
        ("int32 v (UINT_32)", -1, 4_294_967_295),
        ("int32 v (INTEGER(32,false))", -2, 4_294_967_294),
        ("int64 v (UINT_64)", 0, 0),
        ("int64 v (INTEGER(64,false))", i64::MAX, i64::MAX),
    ] {
        let found = read(&declared(&format!("required {column}"), &[number])).unwrap();
        assert_eq!(
            found[0].1,
            Values::Integer(vec![Some(expected)]),
            "{column}"
        );
    }
}

#[test]
fn times_are_read_in_the_unit_of_their_declaration() {
    let seconds = 1_772_366_400;
    let at = Values::Datetime(vec![Some(datetime!(2026-03-01 12:00 UTC))]);
    for (column, number, expected) in [
        ("int64 v (TIMESTAMP_MILLIS)", seconds * 1_000, &at),
        ("int64 v (TIMESTAMP_MICROS)", seconds * 1_000_000, &at),
        ("int64 v (TIMESTAMP(MILLIS,true))", seconds * 1_000, &at),
        ("int64 v (TIMESTAMP(MICROS,true))", seconds * 1_000_000, &at),
        (
            "int64 v (TIMESTAMP(NANOS,true))",
            seconds * 1_000_000_000,
            &at,
        ),
        (
            "int64 v (TIMESTAMP(MILLIS,false))",
            seconds * 1_000,
            &text("2026-03-01T12:00:00"),
        ),
        ("int96 v", 2_461_101, &text("2026-03-01T00:00:00")),
        (
            "int32 v (DATE)",
            20_513,
            &Values::Date(vec![Some(date!(2026 - 03 - 01))]),
        ),
        ("int32 v (TIME_MILLIS)", 30_600_000, &text("08:30:00")),
        ("int64 v (TIME_MICROS)", 1, &text("00:00:00.000001")),
        ("int32 v (TIME(MILLIS,true))", 0, &text("00:00:00")),
        (
            "int32 v (TIME(MILLIS,true))",
            86_399_999,
            &text("23:59:59.999"),
        ),
        ("int64 v (TIME(MICROS,true))", 250_000, &text("00:00:00.25")),
        (
            "int64 v (TIME(NANOS,true))",
            30_600_000_000_000,
            &text("08:30:00"),
        ),
    ] {
        let found = read(&declared(&format!("required {column}"), &[number])).unwrap();
        assert_eq!(found[0].1, *expected, "{column}");
    }
}

#[test]
fn durations_are_seconds_in_each_unit() {
    let arrays: [ArrayRef; 4] = [
        Arc::new(DurationSecondArray::from(vec![90])),
        Arc::new(DurationMillisecondArray::from(vec![90_000])),
        Arc::new(DurationMicrosecondArray::from(vec![90_000_000])),
        Arc::new(DurationNanosecondArray::from(vec![90_000_000_000])),
    ];
    for array in arrays {
        for name in ["t (min)", "t"] {
            let bytes = written(&[(name, Arc::clone(&array))], WriterProperties::default());
            let table = table(&bytes, &ReadOptions::default()).unwrap();
            let column = &table.columns()[0];
            assert_eq!(
                (column.unit.as_deref(), column.holds_times),
                (Some("s"), true)
            );
        }
        let bytes = written(&[("t", array)], WriterProperties::default());
        assert_eq!(read(&bytes).unwrap()[0].1, Values::Float(vec![Some(90.0)]));
    }
}

/// The unit of the only column, of a name and with a unit in its metadata, and that of its header.
fn unit_of(name: &str, array: ArrayRef, unit: &str) -> (Option<String>, Option<String>) {
    let field = Field::new(name, array.data_type().clone(), true);
    let metadata = HashMap::from([("unit".to_owned(), unit.to_owned())]);
    let schema = Arc::new(Schema::new(vec![field.with_metadata(metadata)]));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![array]).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), schema, None).unwrap();
    writer.write(&batch).unwrap();
    let bytes = writer.into_inner().unwrap();
    let table = table(&bytes, &ReadOptions::default()).unwrap();
    let column = &table.columns()[0];
    (column.unit.clone(), column.header_unit.clone())
}

#[test]
fn a_unit_in_the_metadata_of_a_field_is_that_of_its_column() {
    let numbers = || -> ArrayRef { Arc::new(Float64Array::from(vec![5.0])) };
    for (name, noted, unit) in [
        ("c", "mg/mL", Some("mg/mL")),
        ("c", " ", None),
        ("c (raw)", "mg/mL", Some("mg/mL")),
        ("c [\u{b5}g/ml]", "ug/mL", Some("\u{b5}g/ml")),
        // The file contradicts itself.
        ("c [ug/mL]", "mg/mL", Some("ug/mL or mg/mL")),
    ] {
        assert_eq!(unit_of(name, numbers(), noted).0.as_deref(), unit, "{name}");
    }
    // A duration is read as seconds, also where another unit is noted.
    let duration: ArrayRef = Arc::new(DurationSecondArray::from(vec![90]));
    assert_eq!(unit_of("t", duration, "min"), (Some("s".to_owned()), None));
}

#[test]
fn decimals_are_read_from_each_physical_type() {
    for physical in ["int32", "int64", "binary", "fixed_len_byte_array(8)"] {
        let column = format!("required {physical} v (DECIMAL(9,2))");
        let found = read(&declared(&column, &[125, -50])).unwrap();
        let floats = Values::Float(vec![Some(1.25), Some(-0.5)]);
        assert_eq!(found[0].1, floats, "{physical}");
    }
    for physical in ["int64", "binary", "fixed_len_byte_array(8)"] {
        for (scale, number, expected) in [
            (0, 70, "70"),
            (0, -7, "-7"),
            (3, -5, "-0.005"),
            (3, 1_000, "1"),
            (3, 1_234_560, "1234.56"),
            (3, 0, "0"),
        ] {
            let column = format!("required {physical} v (DECIMAL(16,{scale}))");
            let found = read(&declared(&column, &[number])).unwrap();
            assert_eq!(found[0].1, text(expected), "{physical} {number}");
        }
    }
}

#[test]
fn numbers_beyond_what_their_type_can_be_are_refused() {
    for (column, number) in [
        ("int64 v (UINT_64)", -1),
        ("int32 v (TIME_MILLIS)", -1),
        ("int32 v (TIME_MILLIS)", 86_400_000),
        ("int64 v (TIME_MICROS)", 86_400_000_000),
        ("int64 v (TIMESTAMP_MILLIS)", i64::MAX),
        ("int64 v (TIMESTAMP(MICROS,false))", i64::MAX),
        ("int32 v (DATE)", i64::from(i32::MAX)),
        ("int96 v", 0),
    ] {
        let refused = read(&declared(&format!("required {column}"), &[number])).unwrap_err();
        assert!(
            matches!(&refused, ReadError::OutOfRange(name) if name == "v"),
            "{column}: {refused}"
        );
    }
}

#[test]
fn types_without_a_reading_are_refused_before_any_row() {
    for column in [
        "required binary v (BSON)",
        "required fixed_len_byte_array(12) v (INTERVAL)",
        "required fixed_len_byte_array(3) v",
    ] {
        let refused = read(&declared(column, &[])).unwrap_err();
        assert!(
            matches!(&refused, ReadError::UnsupportedType(name) if name == "v"),
            "{column}: {refused}"
        );
    }
    let refused = read(&declared("repeated int32 v", &[])).unwrap_err();
    assert!(matches!(refused, ReadError::Nested(_)), "{refused}");
}

#[test]
fn a_file_has_at_most_as_many_columns_as_a_table() {
    let columns = |count: usize| {
        let columns = (0..count).map(|number| format!("required int32 v{number}"));
        declared(&columns.collect::<Vec<_>>().join("; "), &[])
    };
    assert_eq!(
        open(&columns(MAX_COLUMNS)).unwrap().columns().len(),
        MAX_COLUMNS
    );
    let refused = read(&columns(MAX_COLUMNS + 1)).unwrap_err();
    assert!(matches!(refused, ReadError::TooManyColumns(count) if count == MAX_COLUMNS + 1));
}

#[test]
fn a_cell_has_at_most_sixteen_megabytes_and_a_part_not_many_more() {
    let texts = |lengths: &[usize]| {
        let texts = lengths.iter().map(|length| Some("x".repeat(*length)));
        let texts: ArrayRef = Arc::new(texts.collect::<StringArray>());
        written(&[("t", texts)], WriterProperties::default())
    };
    let mut reader = open(&texts(&[3 << 20; 7])).unwrap();
    let mut lengths = Vec::new();
    while let Some(part) = reader.next_part().unwrap() {
        lengths.push(part[0].len());
    }
    assert_eq!(lengths, [3, 3, 1]);
    let largest = MAX_CELL - CELL_BYTES;
    assert_eq!(read(&texts(&[largest])).unwrap()[0].1.len(), 1);
    let refused = read(&texts(&[largest + 1])).unwrap_err();
    assert!(matches!(refused, ReadError::TooLarge), "{refused}");
}

#[test]
fn a_null_number_holds_in_every_type_of_number() {
    let mut nulls = ReadOptions::default();
    for null in ["-999", "9007199254740993"] {
        nulls.set_field("null_values", null).unwrap();
    }
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![-999.0, -999.5]));
    let integers: ArrayRef = Arc::new(Int64Array::from(vec![
        9_007_199_254_740_993,
        9_007_199_254_740_992,
    ]));
    let decimals = Decimal128Array::from(vec![-99_900, -99_901]);
    let decimals: ArrayRef = Arc::new(decimals.with_precision_and_scale(38, 2).unwrap());
    for array in [floats, integers, decimals] {
        let bytes = written(&[("v", array)], WriterProperties::default());
        let mut table = table(&bytes, &nulls).unwrap();
        assert!(table.next_row().unwrap().unwrap().cells[0].is_none());
        assert!(table.next_row().unwrap().unwrap().cells[0].is_some());
    }
}
