//! Tables that a caller may see, for what was made of tables and outlives them.

use std::collections::BTreeSet;

use super::rights::{Rights, TableRight};
use crate::{
    catalog::{Catalog, TableIdentity},
    trash::TrashedTable,
};

/// Tables that a caller may see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VisibleTables {
    /// All tables, purged ones too.
    All,
    /// These tables of the catalog and of the trash.
    Only(BTreeSet<TableIdentity>),
}

impl Default for VisibleTables {
    /// No table: a caller whose rights were not looked up sees nothing.
    fn default() -> Self {
        Self::Only(BTreeSet::new())
    }
}

impl VisibleTables {
    /// The tables that a caller with these rights may see. A table that is neither in the catalog nor in the trash
    /// has been purged, and only a caller who sees everything may see it.
    #[must_use]
    pub fn of(rights: &Rights, catalog: &Catalog, trash: &[TrashedTable]) -> Self {
        if rights.see_everything() {
            return Self::All;
        }
        let defined = catalog.tables().iter();
        let defined = defined
            .filter(|table| rights.on(table) > TableRight::None)
            .map(|table| table.identity());
        let trashed = trash.iter();
        let trashed = trashed
            .filter(|it| rights.on_identified(&it.table, &it.access) > TableRight::None)
            .map(|it| it.table.clone());
        Self::Only(defined.chain(trashed).collect())
    }

    /// Returns whether the caller may see all of these tables.
    pub fn include_all<'t>(&self, tables: impl IntoIterator<Item = &'t TableIdentity>) -> bool {
        match self {
            Self::All => true,
            Self::Only(visible) => tables.into_iter().all(|table| visible.contains(table)),
        }
    }

    /// The identities as they are stored; `None` for all tables.
    #[must_use]
    pub fn identities(&self) -> Option<Vec<String>> {
        match self {
            Self::All => None,
            Self::Only(visible) => Some(visible.iter().map(ToString::to_string).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        catalog::{CatalogVersion, KeyedTable, Table, TableAccess},
        people::role::Role,
    };

    fn access(read: &[&str]) -> TableAccess {
        TableAccess {
            read: read.iter().map(|name| (*name).to_owned()).collect(),
            write: Vec::new(),
        }
    }

    fn table(id: i64, name: &str, read: &[&str]) -> Table {
        Table {
            id: Some(id),
            name: name.to_owned(),
            access: access(read),
            ..Table::clone(KeyedTable::named("sample").table())
        }
    }

    #[test]
    fn tables_of_catalog_and_trash_are_seen_by_their_access_and_purged_ones_by_administrators() {
        let tables = vec![table(1, "open", &[]), table(2, "closed", &["few"])];
        let catalog = Catalog::new(CatalogVersion(1), tables);
        let trashed = |id, read| TrashedTable {
            table: TableIdentity::Organization(id),
            access: access(read),
        };
        let trash = [trashed(3, &[]), trashed(4, &["few"])];
        let seen = |rights: &Rights| {
            let visible = VisibleTables::of(rights, &catalog, &trash);
            (1..=5)
                .filter(|id| visible.include_all([&TableIdentity::Organization(*id)]))
                .collect::<Vec<_>>()
        };
        assert_eq!(seen(&Rights::of(Role::Member, [])), [1, 3]);
        let inside = Rights::of(Role::Viewer, ["few".to_owned()]);
        assert_eq!(seen(&inside), [1, 2, 3, 4]);
        assert_eq!(seen(&Rights::admin()), [1, 2, 3, 4, 5]);
        let narrowed = Rights::admin().narrowed_to(Some(&[TableIdentity::Organization(2)]));
        assert_eq!(seen(&narrowed), [2]);
        let core = TableIdentity::Core("experiment".to_owned());
        assert!(!VisibleTables::of(&narrowed, &catalog, &trash).include_all([&core]));
        assert!(VisibleTables::of(&inside, &catalog, &trash).include_all([&core]));
    }

    #[test]
    fn without_rights_nothing_is_seen_but_what_has_no_tables() {
        let nothing = VisibleTables::default();
        assert!(nothing.include_all([]));
        assert!(!nothing.include_all([&TableIdentity::Organization(1)]));
        assert_eq!(nothing.identities(), Some(Vec::new()));
        assert_eq!(VisibleTables::All.identities(), None);
    }
}
