//! A row as the text of a JSON object, rendered here: the server's functions for it take longer than
//! the rest of a read.

use std::io::Write as _;

use diesel::{
    QueryableByName,
    deserialize::{FromSql, Result as Read},
    pg::{Pg, PgValue},
    row::{Field, NamedRow, Row},
    sql_types::{BigInt, Bool, Date, Double, Integer, Nullable, Timestamptz, Uuid as SqlUuid},
};
use labdata_domain::{scalar::write_float, timestamp};
use time::OffsetDateTime;
use uuid::Uuid;

/// Number of columns before those of the row: a point's position.
const POSITION: usize = 2;

/// The columns of a point's position, its chunk and the place there; null for rows that have a key.
pub(super) const fn position_columns(is_point: bool) -> &'static str {
    if is_point {
        "c._chunk, p._place"
    } else {
        "NULL::bigint, NULL::bigint"
    }
}

/// A row that was read, after the columns of its position.
pub(super) struct Rendered {
    pub(super) chunk: Option<i64>,
    pub(super) place: Option<i64>,
    /// The text of a JSON object.
    pub(super) json: String,
}

impl QueryableByName<Pg> for Rendered {
    fn build<'a>(row: &impl NamedRow<'a, Pg>) -> Read<Self> {
        let mut json = Vec::with_capacity(row.field_count() * 48);
        json.push(b'{');
        for index in POSITION..row.field_count() {
            if index > POSITION {
                json.push(b',');
            }
            let field = Row::get(row, index).ok_or("a column is missing")?;
            serde_json::to_writer(&mut json, field.field_name().unwrap_or_default())?;
            json.push(b':');
            match field.value() {
                Some(value) => push(&mut json, value)?,
                None => json.extend_from_slice(b"null"),
            }
        }
        json.push(b'}');
        Ok(Self {
            chunk: position(row, 0)?,
            place: position(row, 1)?,
            json: String::from_utf8(json)?,
        })
    }
}

fn position<'a>(row: &impl NamedRow<'a, Pg>, index: usize) -> Read<Option<i64>> {
    let field = Row::get(row, index).ok_or("a row has no position")?;
    FromSql::<Nullable<BigInt>, Pg>::from_nullable_sql(field.value())
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
