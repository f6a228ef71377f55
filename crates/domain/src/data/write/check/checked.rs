//! A request whose cells are read.

use std::sync::Arc;

use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    catalog::{CatalogVersion, ColumnRef, KeyedTable, Owner},
    data::write::{
        Mode, OnMatch, Order, Problem, Questions, RowAddress, problem_list::ProblemList,
        reference::Reference,
    },
    scalar::Values,
};

/// A request whose cells are read. Its questions are still open.
pub struct Checked {
    pub(in crate::data::write) version: CatalogVersion,
    /// `None` for a table write that could not be read at all.
    pub(in crate::data::write) tables: Vec<Option<CheckedTable>>,
    pub(in crate::data::write) series: Vec<CheckedSeries>,
    pub(in crate::data::write) questions: Questions,
    pub(in crate::data::write) labels: Vec<(String, RowAddress)>,
    pub(in crate::data::write) problems: ProblemList,
    pub(in crate::data::write) dry_run: bool,
    pub(in crate::data::write) return_rows: bool,
    pub(in crate::data::write) restores: bool,
}

impl Checked {
    /// Facts to be looked up before [`Checked::plan`].
    #[must_use]
    pub const fn questions(&self) -> &Questions {
        &self.questions
    }

    /// Problems that need no stored row to be found, as [`Checked::plan`] reports them: those of a
    /// request whose references and lookups all exist.
    #[must_use]
    pub fn problems(self) -> Vec<Problem> {
        let results = self.questions.assume_found();
        let mut next = 0_u128;
        // The ids differ, because rows that refer to two new rows must not look like duplicates.
        let mut new_id = || {
            next += 1;
            Uuid::from_u128(next)
        };
        self.plan(&results, &mut new_id).err().unwrap_or_default()
    }
}

pub(in crate::data::write) struct CheckedTable {
    pub(in crate::data::write) index: usize,
    pub(in crate::data::write) table: KeyedTable,
    pub(in crate::data::write) mode: Mode,
    pub(in crate::data::write) on_match: OnMatch,
    pub(in crate::data::write) cascade: bool,
    /// Columns by which rows are matched; none for an insert.
    pub(in crate::data::write) key: Vec<ColumnRef>,
    pub(in crate::data::write) len: usize,
    pub(in crate::data::write) columns: Vec<CheckedColumn>,
    /// For each row, when the row that it matches must have been changed last, if it says so;
    /// empty if no row does.
    pub(in crate::data::write) if_updated_at: Vec<Option<OffsetDateTime>>,
}

pub(in crate::data::write) struct CheckedColumn {
    pub(in crate::data::write) column: ColumnRef,
    /// Position among the input's columns; `None` for a default that no row overrides.
    pub(in crate::data::write) input: Option<usize>,
    pub(in crate::data::write) content: Content,
    /// Rows that give a value; `None` if all do.
    pub(in crate::data::write) provided: Option<Vec<bool>>,
}

impl CheckedColumn {
    /// Returns whether a row gives a value, null included.
    pub(super) fn is_provided(&self, row: usize) -> bool {
        self.provided
            .as_ref()
            .is_none_or(|provided| provided.get(row) == Some(&true))
    }

    pub(super) fn is_null(&self, row: usize) -> bool {
        match &self.content {
            Content::Values(values) => values.is_null(row),
            Content::References(references) => {
                matches!(references.get(row), None | Some(Reference::None))
            }
        }
    }
}

/// Values of a column, one per row or point.
pub(in crate::data::write) enum Content {
    /// Shared with the request, where it has them already.
    Values(Arc<Values>),
    References(Vec<Reference>),
}

pub(in crate::data::write) struct CheckedSeries {
    pub(in crate::data::write) index: usize,
    pub(in crate::data::write) owner: Owner,
    pub(in crate::data::write) parent: Reference,
    pub(in crate::data::write) order: Order,
    pub(in crate::data::write) points: usize,
    pub(in crate::data::write) columns: Vec<CheckedSeriesColumn>,
}

pub(in crate::data::write) struct CheckedSeriesColumn {
    pub(in crate::data::write) column: ColumnRef,
    /// Position among the series' columns; `None` for a default.
    pub(in crate::data::write) input: Option<usize>,
    pub(in crate::data::write) content: Content,
}
