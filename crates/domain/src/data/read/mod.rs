//! Reading rows: a target, filters, a page.

mod filter;
mod mode;
mod row;
mod series;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::Value;
use uuid::Uuid;

pub use filter::{Condition, Field, Hop, Test};
pub use mode::{ReadMode, SingleReadError};
pub use row::RowJson;
pub use series::{
    SERIES_LIMITS, SeriesColumns, SeriesLimits, SeriesPlan, SeriesRefusal, SeriesTooLarge,
};

use crate::{
    catalog::{Catalog, PlatformTable, Table},
    scalar::KeyValue,
};

/// Target of a read.
#[derive(Clone, Debug, PartialEq)]
pub enum ReadTarget {
    /// A table of the organization or a core table.
    Table(Arc<Table>),
    /// A table of the platform itself.
    Platform(PlatformTable),
}

impl ReadTarget {
    /// Finds the target of that name and kind.
    #[must_use]
    pub fn find(catalog: &Catalog, name: &str, core: bool) -> Option<Self> {
        let table = catalog
            .table(name)
            .filter(|table| (table.origin == crate::catalog::Origin::Core) == core);
        match table {
            Some(table) => Some(Self::Table(Arc::clone(table))),
            None if core => PlatformTable::from_name(name).map(Self::Platform),
            None => None,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Table(table) => &table.name,
            Self::Platform(table) => table.as_str(),
        }
    }
}

/// Position in the total order of rows: the last row seen.
///
/// Rows of keyed tables are ordered by descending primary key, newest first for generated ids;
/// points of raw tables by series, then in the order in which they were written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Position {
    /// Primary key of a row.
    Key(KeyValue),
    /// A point: the id of the chunk that stores it, and its index there.
    Point {
        /// Chunk id.
        chunk: i64,
        /// Index in the chunk, starting at 1.
        place: i64,
    },
}

impl Position {
    /// Encodes the position as an opaque text.
    #[must_use]
    pub fn encode(&self) -> String {
        let text = match self {
            Self::Key(KeyValue::Text(text)) => format!("t{text}"),
            Self::Key(KeyValue::Integer(number)) => format!("i{number}"),
            Self::Key(KeyValue::Uuid(id)) => format!("u{id}"),
            Self::Point { chunk, place } => format!("p{chunk}/{place}"),
        };
        URL_SAFE_NO_PAD.encode(text)
    }

    /// Decodes a text written by [`Position::encode`]; `None` for any other text.
    #[must_use]
    pub fn decode(text: &str) -> Option<Self> {
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
        if text.contains('\0') {
            return None;
        }
        let rest = text.get(1..)?;
        match text.as_bytes().first()? {
            b't' => Some(Self::Key(KeyValue::Text(rest.to_owned()))),
            b'i' => rest
                .parse()
                .ok()
                .map(|number| Self::Key(KeyValue::Integer(number))),
            b'u' => Uuid::try_parse(rest)
                .ok()
                .map(|id| Self::Key(KeyValue::Uuid(id))),
            b'p' => {
                let (chunk, place) = rest.split_once('/')?;
                Some(Self::Point {
                    chunk: chunk.parse().ok()?,
                    place: place.parse().ok()?,
                })
            }
            _ => None,
        }
    }

    /// Returns true if rows of the target have positions of this kind.
    #[must_use]
    fn fits(&self, target: &ReadTarget) -> bool {
        use crate::scalar::DataType::{Integer, String, Text, Uuid};
        let key_type = match target {
            ReadTarget::Table(table) => table.primary_key().map(|(_, key)| key.data_type),
            ReadTarget::Platform(table) => table.columns().first().map(|key| key.data_type),
        };
        matches!(
            (self, key_type),
            (Self::Key(KeyValue::Text(_)), Some(String | Text))
                | (Self::Key(KeyValue::Integer(_)), Some(Integer))
                | (Self::Key(KeyValue::Uuid(_)), Some(Uuid))
                | (Self::Point { .. }, None)
        )
    }
}

/// Size of a page's rows, in bytes of JSON, at which it ends although more rows would be allowed.
pub const MAX_PAGE_BYTES: usize = 8 << 20;

/// Validated read.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadPlan {
    /// Target of a read.
    pub target: ReadTarget,
    /// Conditions that rows must meet, all of them.
    pub conditions: Vec<Condition>,
    /// The page starts after this row.
    pub after: Option<Position>,
    /// At most this many rows.
    pub limit: u32,
    /// The page ends with the row that brings it to this size in bytes; [`MAX_PAGE_BYTES`] unless a
    /// test sets another.
    pub max_bytes: usize,
}

/// Page of rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowPage {
    /// The rows.
    pub rows: Vec<RowJson>,
    /// Start of the next page, if more rows follow.
    pub next: Option<Position>,
}

impl ReadPlan {
    /// Returns true if a page of that many rows and bytes is full. It has at least one row.
    #[must_use]
    pub fn is_full(&self, rows: usize, bytes: usize) -> bool {
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        rows >= limit || (rows > 0 && bytes >= self.max_bytes)
    }

    /// Validates filters such as `sample__name` or `value__gte`.
    ///
    /// # Errors
    /// A sentence for every invalid filter, and for a cursor of another list.
    pub fn new<'a>(
        target: ReadTarget,
        catalog: &Catalog,
        filters: impl IntoIterator<Item = (&'a String, &'a Value)>,
        after: Option<Position>,
        limit: u32,
    ) -> Result<Self, Vec<String>> {
        let mut problems = Vec::new();
        let mut conditions = Vec::new();
        for (key, value) in filters {
            match Condition::parse(&target, catalog, key, value) {
                Ok(condition) => conditions.push(condition),
                Err(problem) => problems.push(problem),
            }
        }
        if after
            .as_ref()
            .is_some_and(|position| !position.fits(&target))
        {
            problems.push("the cursor belongs to another list".to_owned());
        }
        if problems.is_empty() {
            Ok(Self {
                target,
                conditions,
                after,
                limit,
                max_bytes: MAX_PAGE_BYTES,
            })
        } else {
            Err(problems)
        }
    }
}
