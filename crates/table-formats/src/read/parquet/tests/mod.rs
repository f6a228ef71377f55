mod types;

use std::{
    io::Cursor,
    sync::{Arc, LazyLock},
};

use arrow_array::{
    Array as _, ArrayRef, Decimal128Array, DictionaryArray, DurationNanosecondArray, Float64Array,
    Int64Array, ListArray, NullArray, RecordBatch, StringArray, Time32MillisecondArray,
    Time64MicrosecondArray, TimestampMicrosecondArray,
    types::{Int32Type, Int64Type},
};
use arrow_schema::DataType as ArrowType;
use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, Encoding},
    file::properties::{WriterProperties, WriterVersion},
};
use time::macros::{date, datetime};

use super::*;
use super::{pages::SharedFile, rows::guarded};
use crate::read::{ReadOptions, ReadTable, open_table, preview::summarize};
use labdata_domain::scalar::Scalar;

/// Files that pyarrow 24 wrote of one table: `name`, `n`, `x`, `at`, `local`, `d`, `price`, `ok`, `u`.
const ZSTANDARD: &[u8] = include_bytes!("../files/zstd.parquet");
const GZIP_V2: &[u8] = include_bytes!("../files/gzip_v2.parquet");
const LZ4: &[u8] = include_bytes!("../files/lz4.parquet");

fn open(bytes: &[u8]) -> Result<ParquetReader, ReadError> {
    let source = Box::new(Cursor::new(bytes.to_vec()));
    guarded(|| open_parquet(SharedFile::new(source)?))
}

/// Reads a whole table, whose columns must be equally long.
fn read(bytes: &[u8]) -> Result<Vec<(String, Values)>, ReadError> {
    let mut reader = open(bytes)?;
    let columns = reader.columns().iter();
    let columns = columns.map(|(name, of)| (name.clone(), Values::with_capacity(*of, 0)));
    let mut columns: Vec<_> = columns.collect();
    while let Some(part) = guarded(|| reader.next_part())? {
        for ((_, values), part) in columns.iter_mut().zip(&part) {
            values.extend(part);
        }
    }
    let length = columns.first().map_or(0, |(_, values)| values.len());
    assert!(columns.iter().all(|(_, values)| values.len() == length));
    Ok(columns)
}

fn written(columns: &[(&str, ArrayRef)], properties: WriterProperties) -> Vec<u8> {
    let columns = columns.iter().cloned().map(|(name, array)| {
        let is_nullable = array.is_nullable() || *array.data_type() == ArrowType::Null;
        (name, array, is_nullable)
    });
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

/// A file of numbers and texts in several row groups.
static SAMPLE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let numbers: Int64Array = (0..3_000).map(|n| (n % 7 != 0).then_some(n)).collect();
    let texts: StringArray = (0..3_000)
        .map(|n| Some(format!("text {}", n % 50)))
        .collect();
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(1_300))
        .build();
    written(
        &[("n", Arc::new(numbers)), ("text", Arc::new(texts))],
        properties,
    )
});

#[test]
fn types_of_other_writers_are_read() {
    let text = |text: &str| Some(text.into());
    let at = Some(datetime!(2026-03-01 12:00 UTC));
    let local = text("2026-03-01T12:00:00");
    let expected = [
        ("name", Values::Text(vec![text("a"), None, text("µ")])),
        ("n", Values::Integer(vec![Some(1), Some(2), None])),
        ("x", Values::Float(vec![Some(0.5), None, None])),
        ("at", Values::Datetime(vec![at; 3])),
        ("local", Values::Text(vec![local; 3])),
        ("d", Values::Date(vec![Some(date!(2026 - 03 - 01)); 3])),
        ("price", Values::Float(vec![Some(1.25); 3])),
        ("ok", Values::Boolean(vec![Some(true), Some(false), None])),
        ("u", Values::Integer(vec![Some(1), Some(2), Some(3)])),
    ];
    let expected = expected.map(|(name, values)| (name.to_owned(), values));
    for bytes in [ZSTANDARD, GZIP_V2] {
        assert_eq!(read(bytes).unwrap(), expected);
    }
}

#[test]
fn what_the_reader_lacks_is_no_damage_of_the_file() {
    let unknown = ReadError::from(ParquetError::NYI("LZO".to_owned()));
    assert!(matches!(unknown, ReadError::Unsupported(what) if what == "LZO"));
}

#[test]
fn several_row_groups_are_one_table() {
    let columns = read(&SAMPLE).unwrap();
    let (name, values) = &columns[0];
    assert_eq!(name, "n");
    let numbers = (0..3_000).map(|n| (n % 7 != 0).then_some(n));
    assert_eq!(*values, Values::Integer(numbers.collect()));
    assert_eq!(columns[1].1.len(), 3_000);
}

#[test]
fn both_versions_of_pages_are_read() {
    let numbers: ArrayRef = Arc::new(Float64Array::from(vec![Some(0.5), None]));
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        let properties = WriterProperties::builder()
            .set_writer_version(version)
            .set_encoding(Encoding::PLAIN)
            .set_compression(Compression::SNAPPY)
            .build();
        let columns = read(&written(&[("x", Arc::clone(&numbers))], properties)).unwrap();
        assert_eq!(columns[0].1, Values::Float(vec![Some(0.5), None]));
    }
}

#[test]
fn texts_that_begin_alike_are_read() {
    let properties = WriterProperties::builder()
        .set_encoding(Encoding::DELTA_BYTE_ARRAY)
        .set_dictionary_enabled(false)
        .build();
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "ab"]));
    let columns = read(&written(&[("a", texts)], properties)).unwrap();
    let expected = ["a", "ab"].map(|text| Some(text.into())).to_vec();
    assert_eq!(columns[0].1, Values::Text(expected));
}

#[test]
fn tables_that_cannot_be_read_are_told_why() {
    let refusal = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
    let plain = WriterProperties::default;
    let list = ListArray::from_iter_primitive::<Int64Type, _, _>([Some([Some(1)])]);
    let nested = written(&[("points", Arc::new(list))], plain());
    assert_eq!(
        refusal(&nested),
        "column \"points\" holds lists or records; a cell of a table holds one value"
    );
    assert!(
        refusal(LZ4).starts_with("the file uses LZ4"),
        "{}",
        refusal(LZ4)
    );
    for bytes in [
        &b""[..],
        b"PAR1",
        b"a,b\n1,2\n",
        b"PK\x03\x04 something else",
    ] {
        assert_eq!(
            refusal(bytes),
            "the file is not Parquet, whatever its name says"
        );
    }
}

#[test]
fn a_file_that_is_cut_is_damaged() {
    let cut = [&SAMPLE[..200], &SAMPLE[SAMPLE.len() - 400..]].concat();
    assert!(matches!(read(&cut), Err(ReadError::Damaged)));
    let mut long = SAMPLE.clone();
    let end = long.len();
    long[end - 8..end - 4].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(matches!(read(&long), Err(ReadError::Damaged)));
}

#[test]
fn few_bytes_of_a_dictionary_do_not_fill_the_memory() {
    // 100 MiB of texts in a file of some kilobytes.
    let text = "x".repeat(256 << 10);
    let keys = std::iter::repeat_n(Some(text.as_str()), 400);
    let dictionary: DictionaryArray<Int32Type> = keys.collect();
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_dictionary_page_size_limit(64 << 20)
        .build();
    let bytes = written(&[("text", Arc::new(dictionary))], properties);
    assert!(bytes.len() < 64 << 10, "{}", bytes.len());
    let mut reader = open(&bytes).unwrap();
    for _ in 0..3 {
        let part = reader.next_part().unwrap().unwrap();
        assert!(part[0].len() <= 33, "a part holds {} texts", part[0].len());
    }
}

fn table(bytes: &[u8], options: &ReadOptions) -> Result<ReadTable, ReadError> {
    open_table(Box::new(Cursor::new(bytes.to_vec())), options, 2_999)
}

#[test]
fn a_file_with_too_many_rows_is_refused_before_they_are_read() {
    let refused = table(&SAMPLE, &ReadOptions::default()).map(drop);
    assert!(matches!(refused, Err(ReadError::TooManyRows(2_999))));
}

/// The first column of a file, as a table reads it.
fn first_column(columns: &[(&str, ArrayRef)], options: &ReadOptions) -> (DataType, Values) {
    let bytes = written(columns, WriterProperties::default());
    let mut read = table(&bytes, options).unwrap();
    let part = read.next_part().unwrap().unwrap();
    (read.columns()[0].data_type, part[0].clone())
}

#[test]
fn types_that_frames_write_are_read() {
    let none = ReadOptions::default();
    let nulls: ArrayRef = Arc::new(NullArray::new(2));
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let (of, values) = first_column(&[("a", nulls), ("n", numbers)], &none);
    assert_eq!((of, values), (DataType::Text, Values::Text(vec![None; 2])));
    let nanos = vec![Some(1_500_000_000), None, Some(-90_000_000_000)];
    let durations: ArrayRef = Arc::new(DurationNanosecondArray::from(nanos));
    let (of, values) = first_column(&[("t", durations)], &none);
    let seconds = Values::Float(vec![Some(1.5), None, Some(-90.0)]);
    assert_eq!((of, values), (DataType::Float, seconds));
    let clock: ArrayRef = Arc::new(Time64MicrosecondArray::from(vec![30_600_000_000]));
    let (_, values) = first_column(&[("t", clock)], &none);
    assert_eq!(values, Values::Text(vec![Some("08:30:00".into())]));
    let clock: ArrayRef = Arc::new(Time32MillisecondArray::from(vec![250]));
    let (_, values) = first_column(&[("t", clock)], &none);
    assert_eq!(values, Values::Text(vec![Some("00:00:00.25".into())]));
}

#[test]
fn decimals_that_no_float_holds_are_texts() {
    let of = |unscaled: Vec<i128>, precision, scale| -> ArrayRef {
        let array = Decimal128Array::from(unscaled);
        Arc::new(array.with_precision_and_scale(precision, scale).unwrap())
    };
    let none = ReadOptions::default();
    for precision in [5, 38] {
        let (found, values) = first_column(&[("d", of(vec![125, -50], precision, 2))], &none);
        let floats = Values::Float(vec![Some(1.25), Some(-0.5)]);
        assert_eq!((found, values), (DataType::Float, floats), "{precision}");
    }
    let long = of(vec![12_345_678_901_234_567_891], 38, 2);
    let (found, values) = first_column(&[("d", Arc::clone(&long))], &none);
    let text = Values::Text(vec![Some("123456789012345678.91".into())]);
    assert_eq!((found, values), (DataType::Text, text));
    let bytes = written(&[("d", long)], WriterProperties::default());
    let mut read = table(&bytes, &none).unwrap();
    read.read_as(&[Some(DataType::Float)]);
    let row = read.next_row().unwrap().unwrap();
    let cell = row.cells[0].clone().unwrap();
    assert!(cell.to_scalar(DataType::Float).is_err());
}

#[test]
fn midnight_fits_a_date_column_and_a_zone_makes_instants() {
    let at: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![1_772_323_200_000_000]));
    let bytes = written(&[("at", at)], WriterProperties::default());
    let none = ReadOptions::default();
    let mut read = table(&bytes, &none).unwrap();
    assert_eq!(read.doubts()[0].code, "timezone");
    read.read_as(&[Some(DataType::Date)]);
    let row = read.next_row().unwrap().unwrap();
    let day = row.cells[0].clone().unwrap().to_scalar(DataType::Date);
    assert_eq!(day, Ok(Scalar::Date(date!(2026 - 03 - 01))));
    let mut zoned = ReadOptions::default();
    zoned.set_field("timezone", "Europe/Berlin").unwrap();
    let mut read = table(&bytes, &zoned).unwrap();
    let part = read.next_part().unwrap().unwrap();
    let expected = Values::Datetime(vec![Some(datetime!(2026-02-28 23:00 UTC))]);
    assert_eq!(part[0], expected);
}

#[test]
fn infinity_is_a_problem() {
    let numbers: ArrayRef = Arc::new(Float64Array::from(vec![f64::NAN, f64::INFINITY]));
    let bytes = written(&[("x", numbers)], WriterProperties::default());
    let mut read = table(&bytes, &ReadOptions::default()).unwrap();
    assert!(matches!(read.next_part(), Err(ReadError::Row(_))));
}

#[test]
fn a_preview_doubts_infinity() {
    let numbers: ArrayRef = Arc::new(Float64Array::from(vec![1.0, f64::INFINITY]));
    let bytes = written(&[("x", numbers)], WriterProperties::default());
    let source = Box::new(Cursor::new(bytes));
    let mut table = open_table(source, &ReadOptions::default(), 10).unwrap();
    let summary = summarize(&mut table, 10).unwrap();
    assert_eq!(summary.rows, [[1.into()], [serde_json::Value::from("inf")]]);
    let doubts: Vec<(&str, &str)> = summary
        .doubts
        .iter()
        .map(|doubt| (&*doubt.code, doubt.path.as_str()))
        .collect();
    assert_eq!(doubts, [("cell_value", "rows[2]")]);
}
