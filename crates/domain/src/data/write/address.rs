//! Addresses of rows in a request.

use std::{fmt, sync::Arc};

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

/// Names of rows in problems.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RowNames {
    /// By their position in the request: `tables[1].rows[0]`.
    #[default]
    Positions,
    /// By their line in the file that is imported: `rows[17]`. The file's rows are the only table
    /// write.
    Lines(Arc<[u64]>),
}

impl RowNames {
    /// The path of a row.
    #[must_use]
    pub fn path(&self, address: RowAddress) -> String {
        match self {
            Self::Positions => address.to_string(),
            Self::Lines(_) => self.row(address.row),
        }
    }

    /// The name of a row within its table write.
    #[must_use]
    pub fn row(&self, row: usize) -> String {
        match self {
            Self::Positions => format!("rows[{row}]"),
            Self::Lines(lines) => {
                let line = lines.get(row).copied().unwrap_or_default();
                format!("rows[{line}]")
            }
        }
    }

    /// The path of another part of a table write, such as `key[0]`.
    #[must_use]
    pub fn part(&self, table: usize, part: &str) -> String {
        match self {
            Self::Positions => format!("tables[{table}].{part}"),
            Self::Lines(_) => part.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_named_by_position_or_by_line() {
        let address = RowAddress { table: 1, row: 2 };
        let positions = RowNames::Positions;
        assert_eq!(positions.path(address), "tables[1].rows[2]");
        assert_eq!(positions.row(2), "rows[2]");
        assert_eq!(positions.part(1, "key[0]"), "tables[1].key[0]");
        let lines = RowNames::Lines([2, 3, 17].into());
        assert_eq!(lines.path(RowAddress { table: 0, row: 2 }), "rows[17]");
        assert_eq!(lines.row(0), "rows[2]");
        assert_eq!(lines.part(0, "key[0]"), "key[0]");
    }
}
