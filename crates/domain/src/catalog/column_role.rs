//! Roles by which a table needs a column.

use std::fmt;

/// Role of a column that its table cannot do without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnRole {
    /// The primary key.
    PrimaryKey,
    /// Part of a set of columns that are unique together: what they promise would be lost.
    UniqueTogether(Vec<String>),
    /// The order of the points of a raw table.
    Order,
    /// The only reference of a raw table.
    OnlyReference,
    /// The only column of values of a raw table.
    OnlyValues,
    /// A reference of a raw table that points have.
    Owner,
}

impl fmt::Display for ColumnRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PrimaryKey => f.write_str("it is the primary key"),
            Self::UniqueTogether(group) => write!(
                f,
                "it is unique together with other columns ({}); first define the table without this group",
                group.join(", ")
            ),
            Self::Order => f.write_str("it is the order of the points"),
            Self::OnlyReference => f.write_str("a raw table needs at least one reference"),
            Self::OnlyValues => f.write_str("a raw table needs at least one column of values"),
            Self::Owner => f.write_str("stored points belong to the rows that it references"),
        }
    }
}
