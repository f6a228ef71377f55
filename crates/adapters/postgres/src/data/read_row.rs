//! A row as the text of a JSON object, rendered here: the server's functions for it take longer than
//! the rest of a read.

use std::io::Write as _;

use diesel::{
    QueryableByName,
    deserialize::{FromSql, Result as Read},
    pg::{Pg, PgValue},
    row::{Field, NamedRow, Row},
    sql_types::{BigInt, Bool, Date, Double, Integer, Jsonb, Timestamptz, Uuid as SqlUuid},
};
use labdata_domain::{
    scalar::{Scalar, write_float},
    timestamp,
};
use time::OffsetDateTime;
use uuid::Uuid;

/// First character of the names of columns that tell a row's position, before those of the row. No
/// column of a table begins with it.
const POSITION: char = '_';

/// The name of a column that tells a row's position.
pub(super) fn position_column(index: usize) -> String {
    format!("{POSITION}{index}")
}

/// The items of a select list that tell a row's position.
pub(super) fn position_columns(expressions: &[String]) -> String {
    let items = expressions.iter().enumerate();
    let items =
        items.map(|(index, expression)| format!("{expression} AS {}", position_column(index)));
    items.collect::<Vec<_>>().join(", ")
}

/// Name of the column of a row's stored JSON, between those of its position and its own.
pub(super) const STORED: &str = "_stored";

/// A row that was read, after the columns of its position.
pub(super) struct Rendered {
    /// The values of [`position_columns`].
    pub(super) position: Vec<Option<Scalar>>,
    /// The text of a JSON object.
    pub(super) json: String,
    /// True if it is the row's stored JSON, by names of columns in SQL.
    pub(super) is_stored: bool,
}

impl QueryableByName<Pg> for Rendered {
    fn build<'a>(row: &impl NamedRow<'a, Pg>) -> Read<Self> {
        let mut position = Vec::with_capacity(2);
        let mut json = Vec::with_capacity(row.field_count() * 48);
        json.push(b'{');
        for index in 0..row.field_count() {
            let field = Row::get(row, index).ok_or("a column is missing")?;
            let name = field.field_name().unwrap_or_default();
            if name == STORED {
                if let Some(value) = field.value() {
                    let json = str::from_utf8(value.as_bytes())?.to_owned();
                    return Ok(Self {
                        position,
                        json,
                        is_stored: true,
                    });
                }
                continue;
            }
            if name.starts_with(POSITION) {
                position.push(field.value().map(scalar).transpose()?);
                continue;
            }
            if json.len() > 1 {
                json.push(b',');
            }
            serde_json::to_writer(&mut json, name)?;
            json.push(b':');
            match field.value() {
                Some(value) => push(&mut json, value)?,
                None => json.extend_from_slice(b"null"),
            }
        }
        json.push(b'}');
        Ok(Self {
            position,
            json: String::from_utf8(json)?,
            is_stored: false,
        })
    }
}

/// A value of a column.
pub(super) fn scalar(value: PgValue<'_>) -> Read<Scalar> {
    Ok(match value.get_oid().get() {
        oid::TEXT | oid::VARCHAR => Scalar::Text(str::from_utf8(value.as_bytes())?.to_owned()),
        oid::INTEGER => Scalar::Integer(FromSql::<BigInt, Pg>::from_sql(value)?),
        oid::SMALLER_INTEGER => {
            let number: i32 = FromSql::<Integer, Pg>::from_sql(value)?;
            Scalar::Integer(number.into())
        }
        oid::FLOAT => Scalar::Float(FromSql::<Double, Pg>::from_sql(value)?),
        oid::BOOLEAN => Scalar::Boolean(FromSql::<Bool, Pg>::from_sql(value)?),
        oid::DATETIME => Scalar::Datetime(FromSql::<Timestamptz, Pg>::from_sql(value)?),
        oid::DATE => Scalar::Date(FromSql::<Date, Pg>::from_sql(value)?),
        oid::UUID => Scalar::Uuid(FromSql::<SqlUuid, Pg>::from_sql(value)?),
        oid::JSON => Scalar::Json(FromSql::<Jsonb, Pg>::from_sql(value)?),
        other => return Err(format!("a row holds the type {other}").into()),
    })
}

/// Type oids of tables' columns, which `pg_type.dat` fixes for all servers.
mod oid {
    pub(super) const BOOLEAN: u32 = 16;
    pub(super) const INTEGER: u32 = 20;
    pub(super) const SMALLER_INTEGER: u32 = 23;
    pub(super) const TEXT: u32 = 25;
    pub(super) const FLOAT: u32 = 701;
    pub(super) const VARCHAR: u32 = 1043;
    pub(super) const DATE: u32 = 1082;
    pub(super) const DATETIME: u32 = 1184;
    pub(super) const UUID: u32 = 2950;
    pub(super) const JSON: u32 = 3802;
}

/// Appends a value as a write accepts it.
fn push(json: &mut Vec<u8>, value: PgValue<'_>) -> Read<()> {
    match value.get_oid().get() {
        oid::TEXT | oid::VARCHAR => {
            serde_json::to_writer(json, std::str::from_utf8(value.as_bytes())?)?;
        }
        oid::INTEGER => write!(json, "{}", <i64 as FromSql<BigInt, Pg>>::from_sql(value)?)?,
        oid::SMALLER_INTEGER => {
            write!(json, "{}", <i32 as FromSql<Integer, Pg>>::from_sql(value)?)?;
        }
        oid::FLOAT => write_float(json, FromSql::<Double, Pg>::from_sql(value)?),
        oid::BOOLEAN => write!(json, "{}", <bool as FromSql<Bool, Pg>>::from_sql(value)?)?,
        oid::DATETIME => {
            let at: OffsetDateTime = FromSql::<Timestamptz, Pg>::from_sql(value)?;
            write!(json, "\"{}\"", timestamp::render(at))?;
        }
        oid::DATE => {
            let date = FromSql::<Date, Pg>::from_sql(value)?;
            write!(json, "\"{}\"", timestamp::render_date(date))?;
        }
        oid::UUID => {
            let id: Uuid = FromSql::<SqlUuid, Pg>::from_sql(value)?;
            write!(json, "\"{id}\"")?;
        }
        // A byte for the version of the form, then the text.
        oid::JSON => match value.as_bytes() {
            [1, text @ ..] => json.extend_from_slice(text),
            _ => return Err("jsonb of a form that is not known".into()),
        },
        other => return Err(format!("a row holds the type {other}").into()),
    }
    Ok(())
}
