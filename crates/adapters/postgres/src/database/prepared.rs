//! Statements of fixed texts, which each connection prepares once: `sql_query` parses and plans
//! its text again every time.

use std::marker::PhantomData;

use diesel::{
    pg::Pg,
    query_builder::{AstPass, Query, QueryFragment, QueryId},
    result::QueryResult,
    sql_types::{Array, BigInt, Text, Timestamptz, Uuid as SqlUuid},
};
use time::OffsetDateTime;
use uuid::Uuid;

/// A statement whose columns have the types `Row`, in parts. There must be few different texts
/// over the life of a connection: values go in as parameters, never as text.
#[derive(Debug)]
pub(crate) struct Prepared<'q, Row> {
    chunks: Vec<Segment<'q>>,
    row: PhantomData<Row>,
}

#[derive(Debug)]
enum Segment<'q> {
    Sql(&'static str),
    Uuid(Uuid),
    Text(&'q str),
    Texts(Vec<String>),
    Uuids(Vec<Uuid>),
    Time(OffsetDateTime),
    Count(i64),
}

/// The limits that are a part of a statement's text; few, as each makes another statement.
const LIMITS: [(i64, &str); 7] = [
    (1, " LIMIT 1"),
    (51, " LIMIT 51"),
    (101, " LIMIT 101"),
    (256, " LIMIT 256"),
    (512, " LIMIT 512"),
    (1_024, " LIMIT 1024"),
    (4_096, " LIMIT 4096"),
];

impl<'q, Row> Prepared<'q, Row> {
    pub(crate) fn new() -> Self {
        Self {
            chunks: Vec::new(),
            row: PhantomData,
        }
    }

    pub(crate) fn sql(&mut self, sql: &'static str) -> &mut Self {
        self.push(Segment::Sql(sql))
    }

    pub(crate) fn uuid(&mut self, value: Uuid) -> &mut Self {
        self.push(Segment::Uuid(value))
    }

    pub(crate) fn text(&mut self, value: &'q str) -> &mut Self {
        self.push(Segment::Text(value))
    }

    pub(crate) fn texts(&mut self, value: Vec<String>) -> &mut Self {
        self.push(Segment::Texts(value))
    }

    pub(crate) fn uuids(&mut self, value: Vec<Uuid>) -> &mut Self {
        self.push(Segment::Uuids(value))
    }

    pub(crate) fn time(&mut self, value: OffsetDateTime) -> &mut Self {
        self.push(Segment::Time(value))
    }

    pub(crate) fn count(&mut self, value: i64) -> &mut Self {
        self.push(Segment::Count(value))
    }

    /// `LIMIT` with a round number in the statement's text, at least that many: the database may then
    /// plan it once for all, where a parameter would have it plan the statement every time.
    pub(crate) fn limit(&mut self, rows: i64) -> &mut Self {
        match LIMITS.iter().find(|(limit, _)| *limit >= rows) {
            Some((_, sql)) => self.sql(sql),
            None => self.sql(" LIMIT ").count(rows),
        }
    }

    fn push(&mut self, chunk: Segment<'q>) -> &mut Self {
        self.chunks.push(chunk);
        self
    }
}

impl<Row> QueryFragment<Pg> for Prepared<'_, Row> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        for chunk in &self.chunks {
            match chunk {
                Segment::Sql(sql) => out.push_sql(sql),
                Segment::Uuid(value) => out.push_bind_param::<SqlUuid, _>(value)?,
                Segment::Text(value) => out.push_bind_param::<Text, _>(*value)?,
                Segment::Texts(value) => out.push_bind_param::<Array<Text>, _>(value)?,
                Segment::Uuids(value) => out.push_bind_param::<Array<SqlUuid>, _>(value)?,
                Segment::Time(value) => out.push_bind_param::<Timestamptz, _>(value)?,
                Segment::Count(value) => out.push_bind_param::<BigInt, _>(value)?,
            }
        }
        Ok(())
    }
}

/// The text is the statement's identity.
impl<Row> QueryId for Prepared<'_, Row> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<Row> Query for Prepared<'_, Row> {
    type SqlType = Row;
}
