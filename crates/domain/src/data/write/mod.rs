//! Data writes: many tables, label references, lookups and series in one transaction.
//!
//! A write goes through pure steps with one question to the database between them: [`check()`]
//! reads every cell with its column's type and collects what must be looked up; the responses come
//! from one round trip; [`Checked::plan`] makes typed columns that an adapter applies set by set.
//! Decisions that depend on stored rows are pure as well ([`TableStep::assign_matches`],
//! [`TableStep::check_references`], [`WritePlan::series_parents`]): the adapter supplies the facts.
//! Problems of one step meet in one list, in request order.

mod address;
pub mod cell;
mod check;
mod conversion;
mod file_cell;
mod file_column;
mod ledger;
mod limits;
mod matching;
mod outcome;
mod parents;
mod plan;
mod problem;
mod problem_list;
mod question;
mod reach;
mod reference;
mod request;
mod resolved;
mod returned_rows;
mod row_image;
mod rows;
#[cfg(test)]
mod tests;

pub use address::{FileLines, LinkedName, RowAddress, RowNames};
pub use check::{Checked, check, check_up_to};
pub(super) use check::{unknown_column, writable_table};
pub use file_cell::{FileCell, UnreadDate};
pub use file_column::FileColumn;
pub use ledger::{LedgerAction, LedgerEntry};
pub use limits::{IF_UPDATED_AT_KEY, LABEL_KEY, MAX_ROWS, MAX_SERIES_VALUES};
pub use matching::{MatchedRow, MatchedStep, RowsWithKeys, StoredReference};
pub use outcome::{DeletedSeries, RowKeys, SeriesOutcome, TableOutcome, WriteOutcome, key_at};
pub use plan::{Action, LateKey, Order, RowKey, SeriesStep, StepColumn, TableStep, WritePlan};
pub(super) use problem::quoted;
pub use problem::{MAX_PROBLEMS, Problem, Reason};
pub use question::{IdQuestion, LookupQuestion, LookupResults, Questions, RowMatch};
pub use reach::OutOfReach;
pub use request::{CellLookup, Mode, OnMatch, SeriesValues, SeriesWrite, TableWrite, WriteRequest};
pub use resolved::{ResolvedColumn, ResolvedColumns};
pub use returned_rows::{MAX_RETURNED_BYTES, ReturnBudget};
pub use row_image::{KEPT_BYTES, KEPT_ROWS, RowImage};
pub use rows::{InputColumn, Rows};
