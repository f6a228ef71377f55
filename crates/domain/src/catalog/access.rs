//! Access to tables.

/// Access to a table: the names of groups that may read and write it. An empty list is everyone of the organization;
/// who may write may read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableAccess {
    /// Groups whose members may read.
    pub read: Vec<String>,
    /// Groups whose members may write.
    pub write: Vec<String>,
}

impl TableAccess {
    /// Returns true if everyone of the organization may read and write.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.read.is_empty() && self.write.is_empty()
    }

    /// The names of all groups.
    pub fn groups(&self) -> impl Iterator<Item = &str> {
        self.read.iter().chain(&self.write).map(String::as_str)
    }

    /// The same, with the groups sorted and each named once.
    #[must_use]
    pub fn normalized(mut self) -> Self {
        for groups in [&mut self.read, &mut self.write] {
            groups.sort_unstable();
            groups.dedup();
        }
        self
    }
}
