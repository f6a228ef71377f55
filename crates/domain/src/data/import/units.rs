//! Units of fields that are those of their columns.

use super::{ImportColumns, ImportField, columns::path};
use crate::{
    catalog::{ColumnRef, UnitMatch, compare_unit},
    data::write::{Problem, Reason, quoted},
    refusal::ErrorCode,
};

/// Advice for a field whose column need not be chosen, so that a choice settles the doubt.
pub(super) const CHOOSABLE: &str =
    "convert them, or choose the column in \"columns\" if they are in its unit";

/// Advice for a field of a linked table: its column is always chosen, which says nothing about its unit.
const CHOSEN: &str = "convert them, or correct the header";

/// The problem of values that are or may be in another unit than that of the column, and so wrong by a factor.
pub(super) fn other_unit(column: &ColumnRef, unit: Option<&str>, advice: &str) -> Option<Reason> {
    let (of_column, of_field) = (column.unit.as_deref()?, unit?);
    let (name, found) = (&column.name, quoted(of_field));
    let message = match compare_unit(of_field, of_column) {
        UnitMatch::Same | UnitMatch::Remark => return None,
        UnitMatch::Other => format!(
            "the file's values are in {found}, those of column \"{name}\" in {of_column}; {advice}"
        ),
        UnitMatch::Unclear => format!(
            "\"{found}\" in the header may be a unit that is not known, and the values of column \"{name}\" are in \
             {of_column}; {advice}"
        ),
    };
    Some(Reason::new(ErrorCode::DoubtfulReading, message))
}

impl ImportColumns {
    /// The problems of fields in another unit than their columns, although these are chosen.
    pub(super) fn other_units(&self, header: &[ImportField]) -> Vec<Problem> {
        let fields = header.iter().zip(&self.columns);
        let problems = fields.filter_map(|(field, column)| {
            let reason = other_unit(column.as_ref()?, field.unit_of_numbers(), CHOSEN)?;
            Some(Problem::at(path(&field.text), reason))
        });
        problems.collect()
    }
}
