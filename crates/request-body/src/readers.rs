//! Readers of single values. They are as lenient as pydantic: a text that is a whole number reads
//! as a number, `"yes"` as true. So one set serves bodies, query strings and paths.

use std::ops::{Bound, RangeBounds, RangeInclusive};

use labdata_domain::{page::Cursor, timestamp};
use serde_json::{Map, Value};
use time::OffsetDateTime;
use uuid::Uuid;

use super::{Kind, Place, Reader, Shape};

/// Another type, by its own [`Shape`].
#[must_use]
pub fn shape<T: Shape>() -> impl Reader<T> {
    |value: Value, place: &Place<'_>| T::read(value, place)
}

/// A text of so many characters. The database keeps no NUL characters, so they are a problem.
pub fn text(characters: impl RangeBounds<usize>) -> impl Reader<String> {
    let least = match characters.start_bound() {
        Bound::Included(least) => *least,
        Bound::Excluded(below) => below.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let most = match characters.end_bound() {
        Bound::Included(most) => *most,
        Bound::Excluded(above) => above.saturating_sub(1),
        Bound::Unbounded => usize::MAX,
    };
    move |value: Value, place: &Place<'_>| {
        let Value::String(text) = value else {
            return place.refuse(Kind::string_type());
        };
        let length = text.chars().count();
        if text.contains('\0') {
            return place.refuse(no_nul());
        }
        if length < least {
            return place.refuse(Kind::string_too_short(least));
        }
        if length > most {
            return place.refuse(Kind::string_too_long(most));
        }
        Some(text)
    }
}

fn no_nul() -> Kind {
    Kind::value_error("text cannot hold NUL characters")
}

/// A whole number between two, both included.
#[must_use]
pub fn integer(range: RangeInclusive<i64>) -> impl Reader<i64> {
    move |value: Value, place: &Place<'_>| {
        let number = match whole(&value) {
            Ok(number) => number,
            Err(kind) => return place.refuse(kind),
        };
        if number > i128::from(*range.end()) {
            return place.refuse(Kind::less_than_equal(*range.end()));
        }
        if number < i128::from(*range.start()) {
            return place.refuse(Kind::greater_than_equal(*range.start()));
        }
        match i64::try_from(number) {
            Ok(number) => Some(number),
            Err(_) => place.refuse(Kind::int_parsing()),
        }
    }
}

/// A whole number from 0 to 4,294,967,295 within the range.
#[must_use]
pub fn unsigned(range: RangeInclusive<u32>) -> impl Reader<u32> {
    let read = integer(i64::from(*range.start())..=i64::from(*range.end()));
    move |value: Value, place: &Place<'_>| u32::try_from(read(value, place)?).ok()
}

/// The whole number that a value means; numbers beyond 128 bits come out as the nearest.
fn whole(value: &Value) -> Result<i128, Kind> {
    match value {
        Value::Number(number) => match (number.as_i128(), number.as_f64()) {
            (Some(whole), _) => Ok(whole),
            #[expect(
                clippy::as_conversions,
                clippy::cast_possible_truncation,
                reason = "it has no fraction, and `as` gives the nearest beyond the limits"
            )]
            (None, Some(float)) if float.fract() == 0.0 => Ok(float as i128),
            _ => Err(Kind::int_from_float()),
        },
        Value::String(text) => {
            let text = text.trim();
            // `5.0` is the whole number 5, as a text too.
            let text = match text.split_once('.') {
                Some((whole, zeros)) if zeros.bytes().all(|byte| byte == b'0') => whole,
                _ => text,
            };
            text.parse().or_else(|_| {
                if is_long_number(text) {
                    Ok(if text.starts_with('-') {
                        i128::MIN
                    } else {
                        i128::MAX
                    })
                } else {
                    Err(Kind::int_parsing())
                }
            })
        }
        Value::Bool(truth) => Ok(i128::from(*truth)),
        _ => Err(Kind::int_type()),
    }
}

fn is_long_number(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// A number.
#[must_use]
pub fn float() -> impl Reader<f64> {
    |value: Value, place: &Place<'_>| match &value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => match text.trim().parse::<f64>() {
            Ok(number) if number.is_finite() => Some(number),
            _ => place.refuse(Kind::float_parsing()),
        },
        _ => place.refuse(Kind::float_type()),
    }
}

/// True or false, also as 1, 0, `yes`, `no`, `on`, `off`, `t`, `f`, `y`, `n`.
#[must_use]
pub fn boolean() -> impl Reader<bool> {
    |value: Value, place: &Place<'_>| match &value {
        Value::Bool(truth) => Some(*truth),
        Value::String(text) => match text.to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" | "t" | "y" => Some(true),
            "false" | "0" | "no" | "off" | "f" | "n" => Some(false),
            _ => place.refuse(Kind::bool_parsing()),
        },
        Value::Number(number) => match number.as_f64() {
            Some(1.0) => Some(true),
            Some(0.0) => Some(false),
            Some(float) if float.fract() == 0.0 => place.refuse(Kind::bool_parsing()),
            _ => place.refuse(Kind::bool_type()),
        },
        _ => place.refuse(Kind::bool_type()),
    }
}

/// One of the named values.
#[must_use]
pub fn choice<T: Clone>(choices: &'static [(&'static str, T)]) -> impl Reader<T> {
    move |value: Value, place: &Place<'_>| {
        let found = value.as_str().and_then(|text| {
            choices
                .iter()
                .find(|(name, _)| *name == text)
                .map(|(_, choice)| choice.clone())
        });
        found.or_else(|| {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            place.refuse(Kind::choice(&names))
        })
    }
}

/// A UUID, for ids that the specification calls so.
#[must_use]
pub fn uuid<T: From<Uuid>>() -> impl Reader<T> {
    |value: Value, place: &Place<'_>| {
        let Value::String(text) = value else {
            return place.refuse(Kind::uuid_type());
        };
        match text.parse::<Uuid>() {
            Ok(uuid) => Some(uuid.into()),
            Err(error) => place.refuse(Kind::uuid_parsing(&error)),
        }
    }
}

/// An id that the specification calls a string: what is no UUID is an unknown id, not a problem
/// of shape.
#[must_use]
pub fn id<T: From<Uuid>>() -> impl Reader<MaybeId<T>> {
    |value: Value, place: &Place<'_>| {
        let Value::String(text) = value else {
            return place.refuse(Kind::string_type());
        };
        Some(MaybeId(text.parse::<Uuid>().ok().map(T::from)))
    }
}

/// An id, or a text that cannot be one and so belongs to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaybeId<T>(Option<T>);

impl<T> MaybeId<T> {
    /// The id, where it can be one.
    pub fn known(self) -> Option<T> {
        self.0
    }
}

/// A point in time with its offset (RFC 3339).
#[must_use]
pub fn datetime() -> impl Reader<OffsetDateTime> {
    |value: Value, place: &Place<'_>| {
        let Value::String(text) = value else {
            return place.refuse(Kind::datetime_type());
        };
        if let Some(at) = timestamp::parse(&text) {
            return Some(at);
        }
        let only_offset_missing = timestamp::parse(&format!("{text}Z")).is_some();
        let kind = if only_offset_missing || timestamp::parse_date(&text).is_some() {
            Kind::timezone_aware()
        } else if text.len() < 10 {
            Kind::datetime_from_date_parsing("input is too short")
        } else {
            Kind::datetime_from_date_parsing("expected a form such as 2026-03-01T12:00:00Z")
        };
        place.refuse(kind)
    }
}

/// A list of whatever the reader reads.
pub fn list<T>(read: impl Reader<T>) -> impl Reader<Vec<T>> {
    move |value: Value, place: &Place<'_>| {
        let Value::Array(items) = value else {
            return place.refuse(Kind::list_type());
        };
        let count = items.len();
        let read: Vec<T> = items
            .into_iter()
            .enumerate()
            .filter_map(|(index, item)| read(item, &place.item(index)))
            .collect();
        (read.len() == count).then_some(read)
    }
}

/// A list of so many items.
pub fn list_of<T>(count: RangeInclusive<usize>, read: impl Reader<T>) -> impl Reader<Vec<T>> {
    let read = list(read);
    move |value: Value, place: &Place<'_>| {
        let actual = value.as_array().map_or(0, Vec::len);
        if value.is_array() && actual < *count.start() {
            return place.refuse(Kind::too_short(*count.start(), actual));
        }
        if actual > *count.end() {
            return place.refuse(Kind::too_long(*count.end(), actual));
        }
        read(value, place)
    }
}

/// A map from names to whatever the reader reads.
pub fn map_of<T>(read: impl Reader<T>) -> impl Reader<Vec<(String, T)>> {
    move |value: Value, place: &Place<'_>| {
        let Value::Object(fields) = value else {
            return place.refuse(Kind::dict_type());
        };
        let count = fields.len();
        let read: Vec<(String, T)> = fields
            .into_iter()
            .filter_map(|(name, field)| {
                let field = read(field, &place.field(&name))?;
                Some((name, field))
            })
            .collect();
        (read.len() == count).then_some(read)
    }
}

/// A JSON object, kept as it is. NUL characters in it are left to those who store it.
#[must_use]
pub fn object() -> impl Reader<Map<String, Value>> {
    |value: Value, place: &Place<'_>| match value {
        Value::Object(map) => Some(map),
        _ => place.refuse(Kind::dict_type()),
    }
}

/// Any JSON, kept as it is. NUL characters in it are left to those who store it.
#[must_use]
pub fn any() -> impl Reader<Value> {
    |value: Value, _: &Place<'_>| Some(value)
}

/// JSON that the database is to keep as it is: no NUL characters anywhere in it.
pub fn storable<T>(read: impl Reader<T>) -> impl Reader<T> {
    move |value: Value, place: &Place<'_>| {
        if has_nul(&value) {
            place.refuse(no_nul())
        } else {
            read(value, place)
        }
    }
}

fn has_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(has_nul),
        Value::Object(fields) => fields
            .iter()
            .any(|(name, field)| name.contains('\0') || has_nul(field)),
        _ => false,
    }
}

/// A place in a list, as a `Link` header gave it.
#[must_use]
pub fn cursor() -> impl Reader<Cursor> {
    |value: Value, place: &Place<'_>| {
        let cursor = value.as_str().and_then(Cursor::decode);
        cursor.or_else(|| place.refuse(Kind::value_error("not a cursor of this list")))
    }
}
