//! Addresses of rows in a request.

use std::fmt;

/// A row of the request. Displays as its path, such as `tables[1].rows[0]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowAddress {
    /// Index of the table write.
    pub table: usize,
    /// Index of the row in it.
    pub row: usize,
}

impl fmt::Display for RowAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tables[{}].rows[{}]", self.table, self.row)
    }
}
