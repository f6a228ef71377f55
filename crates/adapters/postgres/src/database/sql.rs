//! Dynamic SQL: the only place where names become SQL text, and values become parameters.

use std::ops::{Deref, Range};

use diesel::{
    QueryResult,
    pg::Pg,
    query_builder::{AstPass, BoxedSqlQuery, Query, QueryFragment, QueryId, SqlQuery},
    sql_types::{
        Array, BigInt, Bool, Date, Double, Jsonb, Nullable, Text, Timestamptz, Uuid as SqlUuid,
    },
};
use labdata_domain::{
    catalog::{Table, sql_name},
    ids::OrganizationId,
    scalar::{DataType, KeyValue, Scalar, Values},
};

/// A statement with its parameters.
pub(crate) type Statement<'f> = BoxedSqlQuery<'f, Pg, SqlQuery>;

/// A statement of that text, to which `$1`, `$2`, … are bound in turn.
pub(crate) fn statement<'f>(text: String) -> Statement<'f> {
    diesel::sql_query(text).into_boxed()
}

/// A statement that stays prepared on its connection: planned once, then one round trip. Only for
/// statements with few different texts, as PostgreSQL retains each in memory until the connection is
/// closed ([`crate::database::pool`] closes connections after a number of uses).
pub(crate) struct CachedStatement<Q>(pub(crate) Q);

impl<Q: QueryFragment<Pg>> QueryFragment<Pg> for CachedStatement<Q> {
    fn walk_ast<'b>(&'b self, pass: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        self.0.walk_ast(pass)
    }

    /// Diesel does not keep raw SQL by itself, as it cannot know how many texts there are.
    fn is_safe_to_cache_prepared(&self, _: &Pg) -> QueryResult<bool> {
        Ok(true)
    }
}

impl<Q> QueryId for CachedStatement<Q> {
    type QueryId = ();

    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<Q: Query> Query for CachedStatement<Q> {
    type SqlType = Q::SqlType;
}

/// A name as an SQL identifier.
pub(crate) fn ident(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Quotes a text as an SQL literal, for any setting of `standard_conforming_strings`.
pub(crate) fn literal(text: &str) -> String {
    // In `E'…'` a backslash escapes under every setting; in `'…'` that depends on the setting.
    let quoted = text.replace('\'', "''").replace('\\', "\\\\");
    if text.contains('\\') {
        format!("E'{quoted}'")
    } else {
        format!("'{quoted}'")
    }
}

/// The name of the schema that holds an organization's tables and views.
pub(crate) fn schema_name(organization: OrganizationId) -> String {
    format!("org_{}", organization.as_uuid().simple())
}

/// The name of the schema that holds the chunks behind an organization's raw tables.
pub(crate) fn chunk_schema_name(organization: OrganizationId) -> String {
    format!("org_{}_chunks", organization.as_uuid().simple())
}

/// Quoted names of an organization's schemas.
#[derive(Clone, Debug)]
pub(crate) struct Schemas {
    tables: String,
    chunks: String,
}

impl Schemas {
    pub(crate) fn of(organization: OrganizationId) -> Self {
        Self {
            tables: ident(&schema_name(organization)),
            chunks: ident(&chunk_schema_name(organization)),
        }
    }

    /// The schema of tables and views.
    pub(crate) fn tables(&self) -> &str {
        &self.tables
    }

    /// The schema of chunks.
    pub(crate) fn chunks(&self) -> &str {
        &self.chunks
    }

    /// A table or view by its name.
    pub(crate) fn table(&self, name: &str) -> String {
        format!("{}.{}", self.tables, ident(&sql_name(name)))
    }

    /// The chunks behind a raw table.
    pub(crate) fn chunk_table(&self, name: &str) -> String {
        format!("{}.{}", self.chunks, ident(&sql_name(name)))
    }
}

/// The SQL type of a column.
pub(crate) const fn sql_type(data_type: DataType) -> &'static str {
    match data_type {
        DataType::String | DataType::Text => "text",
        DataType::Integer => "bigint",
        DataType::Float => "double precision",
        DataType::Boolean => "boolean",
        DataType::Datetime => "timestamptz",
        DataType::Date => "date",
        DataType::Uuid => "uuid",
        DataType::Json => "jsonb",
    }
}

/// The type of a key or reference: texts compare by their bytes, which is fast and the same on
/// every server.
pub(crate) fn key_type(data_type: DataType) -> String {
    match data_type {
        DataType::String | DataType::Text => "text COLLATE \"C\"".to_owned(),
        other => sql_type(other).to_owned(),
    }
}

/// An expression that renders a column's value so that JSON shows it as a write accepts it.
pub(crate) fn rendered(data_type: DataType, expression: &str) -> String {
    match data_type {
        // JSON of a `timestamptz` depends on the session's time zone, and `to_char` writes all six digits.
        DataType::Datetime => format!(
            "rtrim(rtrim(to_char({expression} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US'), '0'), '.') || 'Z'"
        ),
        _ => expression.to_owned(),
    }
}

/// The select list that renders all of a table's columns, the server's own included, under their
/// names in reads.
pub(crate) fn rendered_columns(table: &Table, alias: &str) -> String {
    let own = table.columns.iter().map(|column| {
        let expression = format!("{alias}.{}", ident(&column.sql_name()));
        let value = rendered(column.data_type, &expression);
        format!("{value} AS {}", ident(&column.name))
    });
    let system = table.system_columns().iter().map(|column| {
        let name = ident(column.name);
        let value = rendered(column.data_type, &format!("{alias}.{name}"));
        format!("{value} AS {name}")
    });
    own.chain(system).collect::<Vec<_>>().join(", ")
}

/// Binds a column of values as an array.
pub(crate) fn bind_values<'f>(statement: Statement<'f>, values: &'f Values) -> Statement<'f> {
    match values {
        Values::Text(v) => statement.bind::<Array<Nullable<Text>>, _>(borrowed(v)),
        Values::Integer(v) => statement.bind::<Array<Nullable<BigInt>>, _>(v),
        Values::Float(v) => statement.bind::<Array<Nullable<Double>>, _>(v),
        Values::Boolean(v) => statement.bind::<Array<Nullable<Bool>>, _>(v),
        Values::Datetime(v) => statement.bind::<Array<Nullable<Timestamptz>>, _>(v),
        Values::Date(v) => statement.bind::<Array<Nullable<Date>>, _>(v),
        Values::Uuid(v) => statement.bind::<Array<Nullable<SqlUuid>>, _>(v),
        Values::Json(v) => statement.bind::<Array<Nullable<Jsonb>>, _>(v),
    }
}

/// Texts as the driver takes them.
fn borrowed(texts: &[Option<impl Deref<Target = str>>]) -> Vec<Option<&str>> {
    texts.iter().map(Option::as_deref).collect()
}

/// Binds a part of a column as an array.
pub(crate) fn bind_rows<'f>(
    statement: Statement<'f>,
    values: &'f Values,
    rows: Range<usize>,
) -> Statement<'f> {
    match values {
        Values::Text(v) => {
            statement.bind::<Array<Nullable<Text>>, _>(borrowed(v.get(rows).unwrap_or_default()))
        }
        Values::Integer(v) => {
            statement.bind::<Array<Nullable<BigInt>>, _>(v.get(rows).unwrap_or_default())
        }
        Values::Float(v) => {
            statement.bind::<Array<Nullable<Double>>, _>(v.get(rows).unwrap_or_default())
        }
        Values::Boolean(v) => {
            statement.bind::<Array<Nullable<Bool>>, _>(v.get(rows).unwrap_or_default())
        }
        Values::Datetime(v) => {
            statement.bind::<Array<Nullable<Timestamptz>>, _>(v.get(rows).unwrap_or_default())
        }
        Values::Date(v) => {
            statement.bind::<Array<Nullable<Date>>, _>(v.get(rows).unwrap_or_default())
        }
        Values::Uuid(v) => {
            statement.bind::<Array<Nullable<SqlUuid>>, _>(v.get(rows).unwrap_or_default())
        }
        Values::Json(v) => {
            statement.bind::<Array<Nullable<Jsonb>>, _>(v.get(rows).unwrap_or_default())
        }
    }
}

/// Binds one value.
pub(crate) fn bind_scalar<'f>(statement: Statement<'f>, scalar: &'f Scalar) -> Statement<'f> {
    match scalar {
        Scalar::Text(v) => statement.bind::<Text, _>(v),
        Scalar::Integer(v) => statement.bind::<BigInt, _>(*v),
        Scalar::Float(v) => statement.bind::<Double, _>(*v),
        Scalar::Boolean(v) => statement.bind::<Bool, _>(*v),
        Scalar::Datetime(v) => statement.bind::<Timestamptz, _>(*v),
        Scalar::Date(v) => statement.bind::<Date, _>(*v),
        Scalar::Uuid(v) => statement.bind::<SqlUuid, _>(*v),
        Scalar::Json(v) => statement.bind::<Jsonb, _>(v),
    }
}

/// A key as the database wrote it as text, read back with its type.
pub(crate) fn key_from_text(text: String, data_type: DataType) -> KeyValue {
    match data_type {
        DataType::Integer => text.parse().map_or(KeyValue::Text(text), KeyValue::Integer),
        DataType::Uuid => text.parse().map_or(KeyValue::Text(text), KeyValue::Uuid),
        _ => KeyValue::Text(text),
    }
}

/// Keys as a column of values.
pub(crate) fn key_values(keys: impl IntoIterator<Item = KeyValue>, data_type: DataType) -> Values {
    let keys = keys.into_iter();
    let mut values = Values::with_capacity(data_type, keys.size_hint().0);
    keys.for_each(|key| values.push(key.into()));
    values
}

/// The values at these indices.
pub(crate) fn gather(values: &Values, rows: &[usize]) -> Values {
    fn pick<T: Clone>(vector: &[Option<T>], rows: &[usize]) -> Vec<Option<T>> {
        rows.iter()
            .map(|row| vector.get(*row).cloned().flatten())
            .collect()
    }
    match values {
        Values::Text(v) => Values::Text(pick(v, rows)),
        Values::Integer(v) => Values::Integer(pick(v, rows)),
        Values::Float(v) => Values::Float(pick(v, rows)),
        Values::Boolean(v) => Values::Boolean(pick(v, rows)),
        Values::Datetime(v) => Values::Datetime(pick(v, rows)),
        Values::Date(v) => Values::Date(pick(v, rows)),
        Values::Uuid(v) => Values::Uuid(pick(v, rows)),
        Values::Json(v) => Values::Json(pick(v, rows)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_or_text_breaks_out_of_its_quotes() {
        assert_eq!(ident("a\"; drop"), "\"a\"\"; drop\"");
        assert_eq!(literal("o'hara"), "'o''hara'");
        assert_eq!(literal("a\\'"), "E'a\\\\'''");
    }
}
