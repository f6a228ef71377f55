//! Conversion of columns of values to Arrow arrays.

use std::{ops::Range, sync::Arc};

use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Float64Array, Int64Array, StringArray,
    TimestampMicrosecondArray,
};
use arrow_schema::{DataType as ArrowType, TimeUnit};
use labdata_domain::scalar::Values;
use time::{Date, OffsetDateTime};

use crate::FormatError;

/// 1970-01-01 as a Julian day.
const EPOCH_JULIAN_DAY: i32 = 2_440_588;

/// Returns the Arrow type of datetimes.
pub(crate) fn utc() -> ArrowType {
    ArrowType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// Converts a part of a column to an array, which is empty if the part is out of range.
pub(crate) fn array(
    name: &str,
    values: &Values,
    part: Range<usize>,
) -> Result<ArrayRef, FormatError> {
    fn of<T>(vector: &[Option<T>], part: Range<usize>) -> std::slice::Iter<'_, Option<T>> {
        vector.get(part).unwrap_or_default().iter()
    }
    Ok(match values {
        Values::Text(v) => Arc::new(of(v, part).map(Option::as_deref).collect::<StringArray>()),
        Values::Integer(v) => Arc::new(of(v, part).copied().collect::<Int64Array>()),
        Values::Float(v) => Arc::new(of(v, part).copied().collect::<Float64Array>()),
        Values::Boolean(v) => Arc::new(of(v, part).copied().collect::<BooleanArray>()),
        Values::Datetime(v) => {
            let micros = of(v, part)
                .map(|at| at.map(|at| micros(name, at)).transpose())
                .collect::<Result<TimestampMicrosecondArray, _>>()?;
            Arc::new(micros.with_data_type(utc()))
        }
        Values::Date(v) => Arc::new(
            of(v, part)
                .map(|date| date.map(days))
                .collect::<Date32Array>(),
        ),
        Values::Uuid(v) => Arc::new(
            of(v, part)
                .map(|id| id.map(|id| id.to_string()))
                .collect::<StringArray>(),
        ),
        Values::Json(v) => Arc::new(
            of(v, part)
                .map(|value| value.as_ref().map(ToString::to_string))
                .collect::<StringArray>(),
        ),
    })
}

/// Converts a point in time to microseconds since 1970.
///
/// # Errors
/// [`FormatError::Unrepresentable`] if they do not fit into 64 bits.
pub(crate) fn micros(name: &str, at: OffsetDateTime) -> Result<i64, FormatError> {
    // Rounds down before 1970 too, where a plain division would round up.
    i64::try_from(at.unix_timestamp_nanos().div_euclid(1000)).map_err(|_| {
        FormatError::Unrepresentable(format!("column {name}: {at} is too far from today"))
    })
}

/// Converts microseconds since 1970 to a point in time.
pub(crate) fn instant(micros: i64) -> Option<OffsetDateTime> {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(micros) * 1000).ok()
}

/// Converts a date to days since 1970.
pub(crate) fn days(date: Date) -> i32 {
    date.to_julian_day() - EPOCH_JULIAN_DAY
}

/// Converts days since 1970 to a date.
pub(crate) fn day(days: i32) -> Option<Date> {
    Date::from_julian_day(days.checked_add(EPOCH_JULIAN_DAY)?).ok()
}
