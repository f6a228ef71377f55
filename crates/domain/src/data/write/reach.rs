//! The reach of a delete: tables whose rows and points are deleted with the rows that they reference.

use std::collections::BTreeMap;

use super::{DeletedSeries, RowKeys};
use crate::{
    catalog::{Catalog, Table},
    people::rights::{Rights, TableRight},
    refusal::{ErrorCode, RefusalKind, Refuse},
};

/// Error: a delete would reach rows or points of a table that the caller may not write.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutOfReach {
    /// The caller may read the table, so it is named.
    #[error(
        "a row cannot be deleted: rows of \"{0}\", a table that you may not change, refer to it"
    )]
    ReadOnly(String),
    /// The table is hidden from the caller.
    #[error("a row cannot be deleted: rows of a table that you may not change refer to it")]
    Hidden,
}

impl Refuse for OutOfReach {
    fn code(&self) -> ErrorCode {
        ErrorCode::TableReadOnly
    }

    fn kind(&self) -> RefusalKind {
        RefusalKind::Forbidden
    }
}

impl OutOfReach {
    /// Refuses tables that the caller may not write, whose rows a delete would reach.
    ///
    /// # Errors
    /// [`OutOfReach`].
    pub fn check<'t>(
        rights: &Rights,
        tables: impl IntoIterator<Item = &'t Table>,
    ) -> Result<(), Self> {
        for table in tables {
            match rights.on(table) {
                TableRight::Write => {}
                TableRight::Read => return Err(Self::ReadOnly(table.name.clone())),
                TableRight::None => return Err(Self::Hidden),
            }
        }
        Ok(())
    }

    /// The same for rows that are to be deleted, and the series that are deleted with them.
    ///
    /// # Errors
    /// [`OutOfReach`].
    pub fn check_deleted(
        rights: &Rights,
        catalog: &Catalog,
        rows: &RowKeys,
        series: &BTreeMap<String, DeletedSeries>,
    ) -> Result<(), Self> {
        let rows = rows.iter().filter(|(_, keys)| !keys.is_empty());
        Self::check(rights, rows.map(|(table, _)| &**table))?;
        let series = series.iter().filter(|(_, series)| series.points > 0);
        let raw = series.filter_map(|(name, _)| catalog.table(name));
        Self::check(rights, raw.map(|table| &**table))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        catalog::{KeyedTable, TableAccess},
        people::role::Role,
    };

    #[test]
    fn a_delete_reaches_only_tables_that_the_caller_may_write() {
        let table = |read: &[&str], write: &[&str]| {
            let groups = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
            let access = TableAccess {
                read: groups(read),
                write: groups(write),
            };
            Table {
                access,
                ..Table::clone(KeyedTable::named("sample").table())
            }
        };
        let member = Rights::of(Role::Member, ["r".to_owned()]);
        let check =
            |table: &Table| OutOfReach::check(&member, [table]).map_err(|it| it.to_string());
        assert_eq!(check(&table(&[], &[])), Ok(()));
        let hidden = check(&table(&["x"], &[])).unwrap_err();
        assert!(!hidden.contains("sample"), "{hidden}");
        let named = check(&table(&["r"], &["w"])).unwrap_err();
        assert!(named.contains("\"sample\""), "{named}");
        let every = OutOfReach::check(&Rights::admin(), [&table(&["x"], &["w"])]);
        assert_eq!(every, Ok(()));
    }
}
