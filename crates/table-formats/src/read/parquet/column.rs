//! Values of a column.

use arrow_schema::{DataType as ArrowType, TimeUnit as ArrowUnit};
use labdata_domain::scalar::{DataType, Values};
use parquet::{
    basic::{ConvertedType, LogicalType, TimeUnit, Type},
    column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader},
    data_type::{ByteArray, DataType as Physical, Int32Type, Int64Type},
    file::metadata::ColumnChunkMetaData,
    schema::types::ColumnDescriptor,
};
use uuid::Uuid;

use super::{
    CELL_BYTES,
    pages::{Chunks, is_readable, pages_of},
    times::{clock, instant, local, nanos_of, seconds},
};
use crate::{columns::day, read::ReadError};

/// Reading of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Boolean,
    Integer,
    /// Of that many bits.
    Unsigned,
    Date,
    /// A point in time, with the number of its units in a second.
    Instant(i128),
    /// A time without a time zone, which is a text, as in queries.
    LocalTime(i128),
    /// A time of 96 bits, which old writers use without a note of its zone.
    LocalTime96,
    Float,
    /// With the number of its decimals; a float holds every number of so few digits.
    Decimal(i32),
    /// With the number of its decimals; has too many digits for a float, so that it is a text at first.
    WideDecimal(i32),
    /// An elapsed time, with the number of its units in a second.
    Duration(i32),
    /// A time of day, with the number of its units in a second.
    Clock(i32),
    /// No value at all.
    Null,
    Text,
    Uuid,
}

/// Number of digits that every float holds.
const FLOAT_DIGITS: i32 = 15;

const fn decimal_kind(precision: i32, scale: i32) -> Kind {
    if precision <= FLOAT_DIGITS {
        Kind::Decimal(scale)
    } else {
        Kind::WideDecimal(scale)
    }
}

impl Kind {
    /// Finds the kind of a column. Parquet has no elapsed times: Arrow notes them beside the schema.
    pub(super) fn of(
        column: &ColumnDescriptor,
        arrow: Option<&ArrowType>,
    ) -> Result<Self, ReadError> {
        let (logical, converted) = (column.logical_type_ref(), column.converted_type());
        if let (Type::INT64, None, ConvertedType::NONE, Some(ArrowType::Duration(unit))) =
            (column.physical_type(), logical, converted, arrow)
        {
            return Ok(Self::Duration(match unit {
                ArrowUnit::Second => 1,
                ArrowUnit::Millisecond => 1_000,
                ArrowUnit::Microsecond => 1_000_000,
                ArrowUnit::Nanosecond => 1_000_000_000,
            }));
        }
        let found = match (column.physical_type(), logical, converted) {
            (_, Some(LogicalType::Unknown), _) => Some(Self::Null),
            (Type::INT32 | Type::INT64, Some(LogicalType::Time(time)), _) => {
                Some(Self::Clock(match time.unit {
                    TimeUnit::MILLIS => 1_000,
                    TimeUnit::MICROS => 1_000_000,
                    TimeUnit::NANOS => 1_000_000_000,
                }))
            }
            (Type::INT32, None, ConvertedType::TIME_MILLIS) => Some(Self::Clock(1_000)),
            (Type::INT64, None, ConvertedType::TIME_MICROS) => Some(Self::Clock(1_000_000)),
            (Type::BOOLEAN, ..) => Some(Self::Boolean),
            (Type::FLOAT | Type::DOUBLE, ..) => Some(Self::Float),
            (Type::INT96, ..) => Some(Self::LocalTime96),
            (_, Some(LogicalType::Decimal(decimal)), _) => {
                Some(decimal_kind(decimal.precision, decimal.scale))
            }
            // Old writers set converted types only; the logical type wins where both are present.
            (_, None, ConvertedType::DECIMAL) => {
                Some(decimal_kind(column.type_precision(), column.type_scale()))
            }
            (Type::INT32, Some(LogicalType::Date), _)
            | (Type::INT32, None, ConvertedType::DATE) => Some(Self::Date),
            (Type::INT64, Some(LogicalType::Timestamp(time)), _) => {
                let units = match time.unit {
                    TimeUnit::MILLIS => 1_000,
                    TimeUnit::MICROS => 1_000_000,
                    TimeUnit::NANOS => 1_000_000_000,
                };
                // Without the flag it is a clock time of an unknown zone, for which an instant would be a guess.
                Some(if time.is_adjusted_to_u_t_c {
                    Self::Instant(units)
                } else {
                    Self::LocalTime(units)
                })
            }
            (Type::INT64, None, ConvertedType::TIMESTAMP_MILLIS) => Some(Self::Instant(1_000)),
            (Type::INT64, None, ConvertedType::TIMESTAMP_MICROS) => Some(Self::Instant(1_000_000)),
            (Type::INT32 | Type::INT64, Some(LogicalType::Integer(integer)), _) => {
                Some(if integer.is_signed {
                    Self::Integer
                } else {
                    Self::Unsigned
                })
            }
            (
                Type::INT32 | Type::INT64,
                None,
                ConvertedType::UINT_8
                | ConvertedType::UINT_16
                | ConvertedType::UINT_32
                | ConvertedType::UINT_64,
            ) => Some(Self::Unsigned),
            (
                Type::INT32 | Type::INT64,
                None,
                ConvertedType::NONE
                | ConvertedType::INT_8
                | ConvertedType::INT_16
                | ConvertedType::INT_32
                | ConvertedType::INT_64,
            ) => Some(Self::Integer),
            (
                Type::BYTE_ARRAY,
                None | Some(LogicalType::String | LogicalType::Enum | LogicalType::Json),
                ConvertedType::NONE
                | ConvertedType::UTF8
                | ConvertedType::ENUM
                | ConvertedType::JSON,
            ) => Some(Self::Text),
            (Type::FIXED_LEN_BYTE_ARRAY, Some(LogicalType::Uuid), _) => Some(Self::Uuid),
            _ => None,
        };
        found.ok_or_else(|| ReadError::UnsupportedType(column.name().to_owned()))
    }

    pub(super) const fn data_type(self) -> DataType {
        match self {
            Self::Boolean => DataType::Boolean,
            Self::Integer | Self::Unsigned => DataType::Integer,
            Self::Date => DataType::Date,
            Self::Instant(_) => DataType::Datetime,
            Self::Float | Self::Decimal(_) | Self::Duration(_) => DataType::Float,
            Self::LocalTime(_)
            | Self::LocalTime96
            | Self::Text
            | Self::Uuid
            | Self::WideDecimal(_)
            | Self::Clock(_)
            | Self::Null => DataType::Text,
        }
    }
}

/// Decoded cells of a column.
pub(super) enum Cells {
    Values(Values),
    /// Texts that share the bytes of their pages.
    Texts(Vec<Option<ByteArray>>),
}

impl Cells {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Values(values) => values.len(),
            Self::Texts(texts) => texts.len(),
        }
    }

    /// Size of a cell in bytes.
    pub(super) fn size(&self, row: usize) -> usize {
        match self {
            Self::Values(_) => CELL_BYTES,
            Self::Texts(texts) => match texts.get(row) {
                Some(Some(text)) => text.len() + CELL_BYTES,
                _ => CELL_BYTES,
            },
        }
    }

    /// Removes the first cells and returns their values.
    pub(super) fn take(&mut self, count: usize, column: &str) -> Result<Values, ReadError> {
        let count = count.min(self.len());
        match self {
            Self::Values(values) => Ok(front(values, count)),
            Self::Texts(texts) => {
                let texts = texts.drain(..count).map(|text| {
                    let text = text.map(|text| str::from_utf8(text.data()).map(Into::into));
                    let text = text.transpose();
                    // Columns without a logical type may hold other bytes than UTF-8.
                    text.map_err(|_| ReadError::UnsupportedType(column.to_owned()))
                });
                texts.collect::<Result<_, _>>().map(Values::Text)
            }
        }
    }
}

/// Removes and returns the first values.
fn front(values: &mut Values, count: usize) -> Values {
    match values {
        Values::Text(v) => Values::Text(v.drain(..count).collect()),
        Values::Integer(v) => Values::Integer(v.drain(..count).collect()),
        Values::Float(v) => Values::Float(v.drain(..count).collect()),
        Values::Boolean(v) => Values::Boolean(v.drain(..count).collect()),
        Values::Datetime(v) => Values::Datetime(v.drain(..count).collect()),
        Values::Date(v) => Values::Date(v.drain(..count).collect()),
        Values::Uuid(v) => Values::Uuid(v.drain(..count).collect()),
        Values::Json(v) => Values::Json(v.drain(..count).collect()),
    }
}

/// A column of a row group that is being read.
pub(super) struct ColumnCells {
    kind: Kind,
    is_nullable: bool,
    reader: ColumnReader,
}

impl ColumnCells {
    pub(super) fn new(
        file: &Chunks,
        column: &ColumnChunkMetaData,
        kind: Kind,
        rows: usize,
    ) -> Result<Self, ReadError> {
        if !is_readable(column.compression()) {
            return Err(ReadError::Unsupported(column.compression().to_string()));
        }
        let descriptor = column.column_descr_ptr();
        Ok(Self {
            kind,
            // Columns are flat: a level above 0 means only that a value may be null.
            is_nullable: descriptor.max_def_level() > 0,
            reader: get_column_reader(descriptor, pages_of(file, column, rows)?),
        })
    }

    /// Decodes the next rows.
    pub(super) fn next(&mut self, rows: usize, name: &str) -> Result<Cells, ReadError> {
        let nullable = self.is_nullable;
        let out_of_range = || ReadError::OutOfRange(name.to_owned());
        let kind = self.kind;
        let values = match &mut self.reader {
            ColumnReader::BoolColumnReader(reader) => {
                Values::Boolean(read(reader, nullable, rows, |flag| Ok(Some(flag)))?)
            }
            ColumnReader::Int32ColumnReader(reader) => int32(reader, nullable, rows, kind, name)?,
            ColumnReader::Int64ColumnReader(reader) => int64(reader, nullable, rows, kind, name)?,
            // Legacy times of Impala and Hive, which write clock times, and of Spark, which writes UTC.
            ColumnReader::Int96ColumnReader(reader) => {
                Values::Text(read(reader, nullable, rows, |time| {
                    let found = nanos_of(&time).and_then(|nanos| local(nanos, 1_000_000_000));
                    found.map(|text| Some(text.into())).ok_or_else(out_of_range)
                })?)
            }
            ColumnReader::FloatColumnReader(reader) => {
                Values::Float(read(reader, nullable, rows, |number| {
                    Ok(finite(number.into()))
                })?)
            }
            ColumnReader::DoubleColumnReader(reader) => {
                Values::Float(read(reader, nullable, rows, |number| Ok(finite(number)))?)
            }
            ColumnReader::ByteArrayColumnReader(reader) => match kind {
                Kind::Null => Values::Text(read(reader, nullable, rows, |_| Ok(None))?),
                Kind::WideDecimal(scale) => Values::Text(read(reader, nullable, rows, |bytes| {
                    unscaled(bytes.data())
                        .map(|number| Some(decimal_text(number, scale).into()))
                        .ok_or_else(out_of_range)
                })?),
                Kind::Decimal(scale) => Values::Float(read(reader, nullable, rows, |bytes| {
                    unscaled(bytes.data())
                        .map(|number| decimal(number, scale))
                        .ok_or_else(out_of_range)
                })?),
                _ => {
                    return Ok(Cells::Texts(read(reader, nullable, rows, |text| {
                        Ok(Some(text))
                    })?));
                }
            },
            ColumnReader::FixedLenByteArrayColumnReader(reader) => match kind {
                Kind::Null => Values::Text(read(reader, nullable, rows, |_| Ok(None))?),
                Kind::WideDecimal(scale) => Values::Text(read(reader, nullable, rows, |bytes| {
                    unscaled(bytes.data())
                        .map(|number| Some(decimal_text(number, scale).into()))
                        .ok_or_else(out_of_range)
                })?),
                Kind::Decimal(scale) => Values::Float(read(reader, nullable, rows, |bytes| {
                    unscaled(bytes.data())
                        .map(|number| decimal(number, scale))
                        .ok_or_else(out_of_range)
                })?),
                _ => Values::Text(read(reader, nullable, rows, |bytes| {
                    let id = Uuid::from_slice(bytes.data()).map_err(|_| ReadError::Damaged)?;
                    Ok(Some(id.to_string().into()))
                })?),
            },
        };
        Ok(Cells::Values(values))
    }
}

/// Reads rows of a column of 32 bits.
fn int32(
    reader: &mut ColumnReaderImpl<Int32Type>,
    nullable: bool,
    rows: usize,
    kind: Kind,
    name: &str,
) -> Result<Values, ReadError> {
    let out_of_range = || ReadError::OutOfRange(name.to_owned());
    Ok(match kind {
        Kind::Date => Values::Date(read(reader, nullable, rows, |days| {
            day(days).map(Some).ok_or_else(out_of_range)
        })?),
        Kind::Decimal(scale) => Values::Float(read(reader, nullable, rows, |unscaled| {
            Ok(decimal(unscaled.into(), scale))
        })?),
        Kind::WideDecimal(scale) => Values::Text(read(reader, nullable, rows, |unscaled| {
            Ok(Some(decimal_text(unscaled.into(), scale).into()))
        })?),
        Kind::Clock(units) => Values::Text(read(reader, nullable, rows, |count| {
            let time = clock(count.into(), units).ok_or_else(out_of_range)?;
            Ok(Some(time.into()))
        })?),
        Kind::Null => Values::Text(read(reader, nullable, rows, |_| Ok(None))?),
        Kind::Unsigned => Values::Integer(read(reader, nullable, rows, |number| {
            Ok(Some(i64::from(number.cast_unsigned())))
        })?),
        _ => Values::Integer(read(reader, nullable, rows, |number| {
            Ok(Some(i64::from(number)))
        })?),
    })
}

/// Reads rows of a column of 64 bits.
fn int64(
    reader: &mut ColumnReaderImpl<Int64Type>,
    nullable: bool,
    rows: usize,
    kind: Kind,
    name: &str,
) -> Result<Values, ReadError> {
    let out_of_range = || ReadError::OutOfRange(name.to_owned());
    Ok(match kind {
        Kind::Instant(units) => Values::Datetime(read(reader, nullable, rows, |count| {
            let found = instant(count.into(), units).ok_or_else(out_of_range)?;
            Ok(Some(found))
        })?),
        Kind::LocalTime(units) => Values::Text(read(reader, nullable, rows, |count| {
            local(count.into(), units)
                .map(|text| Some(text.into()))
                .ok_or_else(out_of_range)
        })?),
        Kind::Decimal(scale) => Values::Float(read(reader, nullable, rows, |unscaled| {
            Ok(decimal(unscaled.into(), scale))
        })?),
        Kind::WideDecimal(scale) => Values::Text(read(reader, nullable, rows, |unscaled| {
            Ok(Some(decimal_text(unscaled.into(), scale).into()))
        })?),
        Kind::Duration(units) => Values::Float(read(reader, nullable, rows, |count| {
            Ok(seconds(count, units))
        })?),
        Kind::Clock(units) => Values::Text(read(reader, nullable, rows, |count| {
            let time = clock(count, units).ok_or_else(out_of_range)?;
            Ok(Some(time.into()))
        })?),
        _ => Values::Integer(read(reader, nullable, rows, |number| match kind {
            // Parquet stores 64 unsigned bits in a signed integer: above 2^63 it looks negative.
            Kind::Unsigned if number < 0 => Err(out_of_range()),
            _ => Ok(Some(number)),
        })?),
    })
}

/// NaN is how some writers say null.
fn finite(number: f64) -> Option<f64> {
    (!number.is_nan()).then_some(number)
}

fn decimal(unscaled: i128, scale: i32) -> Option<f64> {
    // Parsing rounds once; a division by a power of ten would round twice.
    format!("{unscaled}e{}", i64::from(scale).saturating_neg())
        .parse()
        .ok()
}

/// Renders a decimal with all its digits.
fn decimal_text(unscaled: i128, scale: i32) -> String {
    let sign = if unscaled < 0 { "-" } else { "" };
    let digits = unscaled.unsigned_abs().to_string();
    // Bounded, because the scale is the file's claim and each of its digits becomes a character.
    let decimals = usize::try_from(scale.min(1_000)).unwrap_or(0);
    if decimals == 0 {
        let zeros = usize::try_from(scale.saturating_neg().clamp(0, 1_000)).unwrap_or(0);
        return format!("{sign}{digits}{}", "0".repeat(zeros));
    }
    let padded = format!("{digits:0>width$}", width = decimals + 1);
    let (whole, fraction) = padded.split_at(padded.len() - decimals);
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{fraction}")
    }
}

/// Reads a number of up to 128 bits, the most significant byte first.
fn unscaled(bytes: &[u8]) -> Option<i128> {
    let is_negative = bytes.first().is_some_and(|byte| byte & 0x80 != 0);
    // Two's complement: the sign fills the bytes in front.
    let mut wide = [if is_negative { 0xff } else { 0 }; 16];
    let start = wide.len().checked_sub(bytes.len())?;
    wide.get_mut(start..)?.copy_from_slice(bytes);
    Some(i128::from_be_bytes(wide))
}

/// Reads exactly that many rows of a column.
fn read<T: Physical, V>(
    reader: &mut ColumnReaderImpl<T>,
    is_nullable: bool,
    rows: usize,
    convert: impl Fn(T::T) -> Result<Option<V>, ReadError>,
) -> Result<Vec<Option<V>>, ReadError> {
    let (mut levels, mut values, mut found) = (Vec::new(), Vec::new(), 0);
    while found < rows {
        let into = is_nullable.then_some(&mut levels);
        // It may stop at the end of a page, with fewer rows than asked for.
        let (read, ..) = reader.read_records(rows - found, into, None, &mut values)?;
        // The pages have fewer rows than the footer declares, and the loop would not end.
        if read == 0 {
            return Err(ReadError::Damaged);
        }
        found += read;
    }
    let mut values = values.into_iter();
    if !is_nullable {
        return values.map(convert).collect();
    }
    let cells = levels.into_iter().map(|level: i16| match level {
        0 => Ok(None),
        _ => convert(values.next().ok_or(ReadError::Damaged)?),
    });
    cells.collect()
}
