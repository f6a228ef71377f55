//! Access to tables.

use crate::names::RecordName;

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

    /// Returns true if everyone of the organization may read.
    #[must_use]
    pub fn is_read_by_all(&self) -> bool {
        self.read.is_empty()
    }

    /// The names of all groups.
    pub fn groups(&self) -> impl Iterator<Item = &str> {
        self.read.iter().chain(&self.write).map(String::as_str)
    }

    /// The same without groups that were deleted. A list of which none is left names its first one: empty, it would open the
    /// table. That group comes back without members, so that only administrators have access.
    #[must_use]
    pub fn retained(&self, exists: impl Fn(&str) -> bool) -> Self {
        let retained = |groups: &Vec<String>| {
            let mut left = groups.clone();
            left.retain(|group| exists(group));
            if left.is_empty() {
                left.extend(groups.first().cloned());
            }
            left
        };
        Self {
            read: retained(&self.read),
            write: retained(&self.write),
        }
    }

    /// The same with each group as [`RecordName::find`] finds it.
    #[must_use]
    pub fn found(mut self, exists: impl Fn(&str) -> bool) -> Self {
        for group in self.read.iter_mut().chain(&mut self.write) {
            *group = RecordName::find(group, &exists);
        }
        self
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_names_no_deleted_group_but_one_that_keeps_a_table_closed() {
        let access = |read: &[&str], write: &[&str]| {
            let groups = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
            TableAccess {
                read: groups(read),
                write: groups(write),
            }
        };
        let exists = |group: &str| group.starts_with("old");
        for (before, after) in [
            (access(&[], &[]), access(&[], &[])),
            (access(&["a", "old"], &["b", "c"]), access(&["old"], &["b"])),
            (access(&["a"], &["old"]), access(&["a"], &["old"])),
            (access(&["a"], &[]), access(&["a"], &[])),
        ] {
            assert_eq!(before.retained(exists), after);
        }
    }
}
