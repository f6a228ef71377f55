//! Texts of problems of a read, which several parts of a request may have.

use crate::data::write::quoted;

/// The problem of a column that the table or target of that name lacks.
pub(super) fn unknown_column(owner: &str) -> String {
    format!("\"{owner}\" has no such column")
}

/// The problem of an entry that a list of the request has twice.
pub(super) fn named_twice(list: &str, entry: &str) -> String {
    format!("{list} \"{}\": named twice", quoted(entry))
}
