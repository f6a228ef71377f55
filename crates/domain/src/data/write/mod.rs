//! Data writes: many tables, label references, lookups and series in one transaction.
//!
//! A write goes through three pure steps with one question to the database between them:
//! [`check()`] reads every cell with its column's type and collects what must be asked;
//! the answers come from one round trip; [`Checked::plan`] turns both into typed columns that an
//! adapter applies set by set. Problems of all steps meet in one list, in request order.

pub mod cell;
mod check;
mod check_series;
mod outcome;
mod plan;
mod problem;
mod problem_list;
mod question;
mod reference;
mod request;
#[cfg(test)]
mod tests;

pub use check::{Checked, check};
pub use outcome::{SeriesOutcome, TableOutcome, WriteOutcome};
pub use plan::{
    Action, Order, RowAddress, RowKey, SeriesColumn, SeriesStep, StepColumn, TableStep, WritePlan,
};
pub use problem::{MAX_PROBLEMS, Problem};
pub use question::{Answers, IdQuestion, LookupAnswer, LookupQuestion, Questions};
pub use request::{
    InputColumn, Mode, OnMatch, Rows, SeriesValues, SeriesWrite, TableWrite, WriteRequest,
};

/// The most rows of a request, across all its table writes (specification, "Limits").
pub const MAX_ROWS: usize = 10_000;
/// The most values of a request, across all columns of all its series.
pub const MAX_SERIES_VALUES: usize = 250_000;
/// The key of a row's map that gives the row a label.
pub const LABEL_KEY: &str = "_ref";
