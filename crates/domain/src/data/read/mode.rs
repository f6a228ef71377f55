//! Modes of a read: exactly one row, or pages of many.

use super::RowPage;
use crate::{
    page::DEFAULT_LIMIT,
    refusal::{ErrorCode, RefusalKind, Refuse},
};

/// Number of rows expected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadMode {
    /// Exactly one.
    Single,
    /// Any number, a page at a time.
    #[default]
    Multiple,
}

/// Why a single read has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SingleReadError {
    /// No row matches.
    #[error("row not found")]
    None,
    /// More than one row matches.
    #[error("several rows match; a single read needs exactly one")]
    Several,
}

impl Refuse for SingleReadError {
    fn code(&self) -> ErrorCode {
        match self {
            Self::None => ErrorCode::NotFound,
            Self::Several => ErrorCode::SeveralRows,
        }
    }

    fn kind(&self) -> RefusalKind {
        match self {
            Self::None => RefusalKind::NotFound,
            Self::Several => RefusalKind::Invalid,
        }
    }
}

impl ReadMode {
    /// Both modes and their names in the API.
    pub const ALL: [(&'static str, Self); 2] =
        [("single", Self::Single), ("multiple", Self::Multiple)];

    /// Number of rows to read; `limit` is the requested one. A single read takes a second row, if
    /// there is one, to find that several match.
    #[must_use]
    pub fn row_limit(self, limit: Option<u32>) -> u32 {
        match self {
            // A second row proves that several match.
            Self::Single => 2,
            Self::Multiple => limit.unwrap_or(DEFAULT_LIMIT),
        }
    }

    /// Checks the rows that were read. A single read has no next page.
    ///
    /// # Errors
    /// [`SingleReadError`].
    pub fn check(self, page: RowPage) -> Result<RowPage, SingleReadError> {
        match (self, page.rows.len()) {
            (Self::Multiple, _) => Ok(page),
            (Self::Single, 0) => Err(SingleReadError::None),
            // A page that is full with one row has a next page if several match.
            (Self::Single, 1) if page.next.is_none() => Ok(page),
            (Self::Single, _) => Err(SingleReadError::Several),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;
    use crate::{
        data::read::{RowJson, RowPosition},
        scalar::KeyValue,
    };

    fn page(rows: usize) -> RowPage {
        RowPage {
            rows: vec![RowJson::from_map(&Map::new()); rows],
            next: None,
        }
    }

    fn full_page(rows: usize) -> RowPage {
        RowPage {
            next: Some(RowPosition::Key(KeyValue::Integer(1)).into()),
            ..page(rows)
        }
    }

    #[test]
    fn a_single_read_needs_exactly_one_row() {
        let single = ReadMode::Single;
        assert_eq!(single.check(page(0)), Err(SingleReadError::None));
        let one = single.check(page(1)).unwrap();
        assert_eq!((one.rows.len(), one.next), (1, None));
        assert_eq!(single.check(page(2)), Err(SingleReadError::Several));
        // A large row fills a page, and another one follows.
        assert_eq!(single.check(full_page(1)), Err(SingleReadError::Several));
    }

    #[test]
    fn a_multiple_read_takes_any_number_of_rows() {
        for rows in [0, 1, 2] {
            assert_eq!(ReadMode::Multiple.check(page(rows)), Ok(page(rows)));
            let full = ReadMode::Multiple.check(full_page(rows));
            assert_eq!(full, Ok(full_page(rows)));
        }
    }

    #[test]
    fn a_single_read_looks_for_a_second_row() {
        assert_eq!(ReadMode::Single.row_limit(Some(1)), 2);
        assert_eq!(ReadMode::Multiple.row_limit(Some(7)), 7);
        assert_eq!(ReadMode::Multiple.row_limit(None), DEFAULT_LIMIT);
    }
}
