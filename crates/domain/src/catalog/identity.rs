//! Identity of a table.

use std::fmt;

use super::Table;

/// Identity of a table, which a new name does not change: of the organization's tables the id, which no later table
/// has and a table from the trash has again; of core tables the name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TableIdentity {
    /// Id of a table of the organization.
    Organization(i64),
    /// Name of a core table.
    Core(String),
}

impl TableIdentity {
    /// Reads a stored identity. Names begin with a letter, so that no name is an id.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        text.parse()
            .map_or_else(|_| Self::Core(text.to_owned()), Self::Organization)
    }
}

impl fmt::Display for TableIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Organization(id) => id.fmt(f),
            Self::Core(name) => f.write_str(name),
        }
    }
}

impl Table {
    /// The table's identity.
    #[must_use]
    pub fn identity(&self) -> TableIdentity {
        self.id.map_or_else(
            || TableIdentity::Core(self.name.clone()),
            TableIdentity::Organization,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_identity_reads_back() {
        for identity in [
            TableIdentity::Organization(12),
            TableIdentity::Core("experiment".to_owned()),
        ] {
            assert_eq!(TableIdentity::parse(&identity.to_string()), identity);
        }
    }
}
