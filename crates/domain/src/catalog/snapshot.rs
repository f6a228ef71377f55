//! The catalog: a consistent snapshot of all tables of one organization.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    sync::Arc,
};

use super::{ColumnRef, KeyedTable, Owner, Table, TableDefinition, core_tables::core_tables};
use crate::people::rights::{Rights, TableRight};

/// Name that a reference shows in place of a hidden table's. No table has it.
pub const HIDDEN_TABLE: &str = "";

/// Number of changes to an organization's tables; tells a stale snapshot from a current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CatalogVersion(pub i64);

/// All tables of an organization at one version. Cheap to share; never changes.
#[derive(Clone, Debug)]
pub struct Catalog {
    /// The version of this snapshot.
    pub version: CatalogVersion,
    tables: Vec<Arc<Table>>,
    by_name: HashMap<String, Arc<Table>>,
    /// Names of the organization's groups.
    groups: Vec<String>,
    /// Tables that the caller may not see.
    hidden: Vec<Arc<Table>>,
    /// Raw tables of a caller's view as they are, with references to hidden tables.
    unveiled: Vec<Arc<Table>>,
}

impl Catalog {
    /// A catalog of the organization's tables; the core tables are added. A table of the organization that
    /// bears the name of a core table stays, and takes the place of that and of what refers to it: it was
    /// there before the program had the core table.
    #[must_use]
    pub fn new(version: CatalogVersion, organization_tables: Vec<Table>) -> Self {
        let mut taken: HashSet<String> = organization_tables
            .iter()
            .map(|table| table.name.clone())
            .collect();
        let mut core = core_tables();
        core.retain(|table| {
            let is_free = !taken.contains(&table.name)
                && !table.references().any(|(_, target)| taken.contains(target));
            if !is_free {
                taken.insert(table.name.clone());
            }
            is_free
        });
        let tables: Vec<Arc<Table>> = organization_tables
            .into_iter()
            .chain(core)
            .map(Arc::new)
            .collect();
        Self::of(version, tables)
    }

    fn of(version: CatalogVersion, tables: Vec<Arc<Table>>) -> Self {
        let by_name = tables
            .iter()
            .map(|table| (table.name.clone(), Arc::clone(table)))
            .collect();
        Self {
            version,
            tables,
            by_name,
            groups: Vec::new(),
            hidden: Vec::new(),
            unveiled: Vec::new(),
        }
    }

    /// The same, with the names of the organization's groups, which definitions may give access to.
    #[must_use]
    pub fn with_groups(self, groups: Vec<String>) -> Self {
        Self { groups, ..self }
    }

    /// Returns whether the organization has a group of that name.
    #[must_use]
    pub fn has_group(&self, name: &str) -> bool {
        self.groups.iter().any(|group| group == name)
    }

    /// The catalog as a caller with these rights sees it: hidden tables do not exist, and references to
    /// them lead to [`HIDDEN_TABLE`].
    #[must_use]
    pub fn visible_to(self: &Arc<Self>, rights: &Rights) -> Arc<Self> {
        let is_hidden = |table: &Table| rights.on(table) == TableRight::None;
        // Nearly always nothing is hidden, and the snapshot is shared.
        if rights.see_everything() || !self.tables.iter().any(|table| is_hidden(table)) {
            return Arc::clone(self);
        }
        let all = self.tables.iter().cloned();
        let (hidden, visible): (Vec<_>, Vec<_>) = all.partition(|table| is_hidden(table));
        let raw = visible.iter().filter(|table| table.is_raw());
        let unveiled = raw.cloned().collect();
        let visible = visible.into_iter().map(|table| veiled(table, &hidden));
        let visible = visible.collect();
        Arc::new(Self {
            groups: self.groups.clone(),
            hidden,
            unveiled,
            ..Self::of(self.version, visible)
        })
    }

    /// Tables that the caller may not see; none unless this is a caller's view.
    #[must_use]
    pub fn hidden(&self) -> &[Arc<Table>] {
        &self.hidden
    }

    /// A message without the names of hidden tables.
    #[must_use]
    pub fn redacted<'m>(&self, message: &'m str) -> Cow<'m, str> {
        let mut message = Cow::Borrowed(message);
        for table in &self.hidden {
            let quoted = format!("\"{}\"", table.name);
            // With the noun before the name, so that the sentence stays one.
            for name in [format!("table {quoted}"), quoted] {
                if message.contains(&name) {
                    message = message.replace(&name, "a hidden table").into();
                }
            }
        }
        message
    }

    /// A first catalog of these tables. A table comes after the tables that it references.
    ///
    /// # Errors
    /// Every reason why the first refused definition cannot be, as sentences.
    pub fn define<'d>(
        definitions: impl IntoIterator<Item = &'d TableDefinition>,
    ) -> Result<Self, Vec<String>> {
        let mut catalog = Self::new(CatalogVersion(0), Vec::new());
        let mut tables: Vec<Table> = Vec::new();
        for definition in definitions {
            if tables.iter().any(|table| table.name == definition.name) {
                return Err(vec![format!(
                    "table \"{}\" is defined twice",
                    definition.name
                )]);
            }
            // Each definition may reference the ones before it.
            tables.push(definition.resolve(&catalog)?);
            catalog = Self::new(CatalogVersion(0), tables.clone());
        }
        Ok(catalog)
    }

    /// The table of that name.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<&Arc<Table>> {
        self.by_name.get(name)
    }

    /// The table of that name, if its rows have a key.
    #[must_use]
    pub fn keyed_table(&self, name: &str) -> Option<KeyedTable> {
        KeyedTable::of(self.table(name)?)
    }

    /// The raw table's reference to the rows that own its points, with their table. That may be one that is hidden
    /// from the caller: the keys of its rows are values of the points.
    #[must_use]
    pub fn owner(&self, table: &Arc<Table>, column: &ColumnRef) -> Option<Owner> {
        let of = |parent, is_parent_hidden| Owner {
            table: Arc::clone(table),
            column: column.clone(),
            parent,
            is_parent_hidden,
        };
        let target = column.references.as_deref()?;
        if target != HIDDEN_TABLE {
            return Some(of(self.keyed_table(target)?, false));
        }
        let unveiled = self.unveiled.iter().find(|it| it.name == table.name)?;
        let target = unveiled.column(&column.name)?.references.as_deref()?;
        let parent = self.hidden.iter().find(|it| it.name == target)?;
        Some(of(KeyedTable::of(parent)?, true))
    }

    /// All tables: the organization's first, then the core tables.
    #[must_use]
    pub fn tables(&self) -> &[Arc<Table>] {
        &self.tables
    }

    /// References to a table, with the tables that have them.
    pub fn referencing<'a>(
        &'a self,
        table: &'a str,
    ) -> impl Iterator<Item = (&'a Arc<Table>, &'a ColumnRef)> {
        self.tables.iter().flat_map(move |other| {
            other
                .references()
                .filter(move |(_, target)| *target == table)
                .map(move |(column, _)| (other, column))
        })
    }

    /// References of rows, not of points, to a table.
    pub fn row_references<'a>(
        &'a self,
        table: &'a str,
    ) -> impl Iterator<Item = (KeyedTable, &'a ColumnRef)> {
        self.referencing(table)
            .filter_map(|(other, column)| Some((KeyedTable::of(other)?, column)))
    }
}

/// A table whose references do not show the names of hidden ones.
fn veiled(table: Arc<Table>, hidden: &[Arc<Table>]) -> Arc<Table> {
    let is_hidden = |target: &str| hidden.iter().any(|table| table.name == target);
    if !table.references().any(|(_, target)| is_hidden(target)) {
        return table;
    }
    let mut veiled = Table::clone(&table);
    veiled.columns.update(|column| {
        // Still a reference, which its name in SQL depends on.
        if column.references.as_deref().is_some_and(is_hidden) {
            column.references = Some(HIDDEN_TABLE.to_owned());
        }
    });
    Arc::new(veiled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        catalog::{ColumnDefinition, TableAccess, TableDefinition},
        people::role::Role,
        scalar::DataType,
    };

    fn catalog() -> Arc<Catalog> {
        let named = || ColumnDefinition::new("name", DataType::String);
        let secret = TableDefinition::new("secret", vec![named()]);
        let link = ColumnDefinition {
            references: Some("secret".to_owned()),
            ..ColumnDefinition::new("secret", DataType::String)
        };
        let open = TableDefinition::new("open", vec![named(), link]);
        let catalog = Catalog::define([&secret, &open]).unwrap();
        let tables = catalog.tables().iter().take(2).map(|table| {
            let mut table = Table::clone(table);
            if table.name == "secret" {
                table.access = TableAccess {
                    read: vec!["few".to_owned()],
                    write: Vec::new(),
                };
            }
            table
        });
        let groups = vec!["few".to_owned()];
        Arc::new(Catalog::new(CatalogVersion(3), tables.collect()).with_groups(groups))
    }

    #[test]
    fn a_hidden_table_does_not_exist_for_the_caller() {
        let all = catalog();
        let view = all.visible_to(&Rights::of(Role::Member, []));
        assert!(view.table("secret").is_none());
        assert_eq!(view.hidden().len(), 1);
        assert_eq!((view.version, view.has_group("few")), (all.version, true));
        let column = view
            .table("open")
            .unwrap()
            .column("secret")
            .unwrap()
            .clone();
        assert_eq!(column.references.as_deref(), Some(HIDDEN_TABLE));
        assert_eq!(column.sql_name(), "secret_id");
        assert!(view.keyed_table(HIDDEN_TABLE).is_none());
        let seen = view.redacted("rows of \"secret\" reference it");
        assert_eq!(seen, "rows of a hidden table reference it");
        let seen = view.redacted("as table \"secret\" is");
        assert_eq!(seen, "as a hidden table is");
    }

    #[test]
    fn who_may_read_everything_shares_the_snapshot() {
        let all = catalog();
        for rights in [
            Rights::admin(),
            Rights::of(Role::Viewer, ["few".to_owned()]),
        ] {
            assert!(Arc::ptr_eq(&all, &all.visible_to(&rights)));
        }
    }
}
