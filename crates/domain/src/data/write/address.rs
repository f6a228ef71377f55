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
    /// By their line in the file that is imported: `rows[17]`, or `rows[17].plate` in a linked table. One entry
    /// per table write.
    Lines(Arc<[FileLines]>),
}

/// Lines of a file that became the rows of a table write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileLines {
    /// The line of each row.
    pub lines: Arc<[u64]>,
    /// Name of a table that is linked to the one of the import.
    pub linked: Option<LinkedName>,
}

/// Name of a linked table in problems.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkedName {
    /// Its index among the linked tables.
    pub index: usize,
    /// The table.
    pub table: String,
}

impl FileLines {
    fn row(&self, row: usize) -> String {
        let line = self.lines.get(row).copied().unwrap_or_default();
        match &self.linked {
            None => format!("rows[{line}]"),
            Some(linked) => format!("rows[{line}].{}", linked.table),
        }
    }
}

impl RowNames {
    /// The path of a row.
    #[must_use]
    pub fn path(&self, address: RowAddress) -> String {
        match self {
            Self::Positions => address.to_string(),
            Self::Lines(_) => self.row(address),
        }
    }

    /// The name of a row within its table write.
    #[must_use]
    pub fn row(&self, address: RowAddress) -> String {
        let RowAddress { table, row } = address;
        match self {
            Self::Positions => format!("rows[{row}]"),
            Self::Lines(tables) => tables
                .get(table)
                .map_or_else(|| format!("rows[{row}]"), |lines| lines.row(row)),
        }
    }

    /// The path of another part of a table write, such as `key[0]`.
    #[must_use]
    pub fn part(&self, table: usize, part: &str) -> String {
        match self {
            Self::Positions => format!("tables[{table}].{part}"),
            Self::Lines(tables) => match tables.get(table).and_then(|it| it.linked.as_ref()) {
                Some(linked) => format!("linked[{}].{part}", linked.index),
                None => part.to_owned(),
            },
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
        assert_eq!(positions.row(address), "rows[2]");
        assert_eq!(positions.part(1, "key[0]"), "tables[1].key[0]");
        let linked = FileLines {
            lines: [2, 17].into(),
            linked: Some(LinkedName {
                index: 0,
                table: "plate".to_owned(),
            }),
        };
        let own = FileLines {
            lines: [2, 3, 17].into(),
            linked: None,
        };
        let lines = RowNames::Lines([linked, own].into());
        assert_eq!(lines.path(address), "rows[17]");
        assert_eq!(lines.part(1, "key[0]"), "key[0]");
        let address = RowAddress { table: 0, row: 1 };
        assert_eq!(lines.row(address), "rows[17].plate");
        assert_eq!(lines.part(0, "key[0]"), "linked[0].key[0]");
    }
}
