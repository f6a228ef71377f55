//! The catalog: a consistent snapshot of all tables of one organization.

use std::{collections::HashMap, sync::Arc};

use super::{ColumnRef, KeyedTable, Table, TableDefinition, core_tables::core_tables};

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
}

impl Catalog {
    /// A catalog of the organization's tables; the core tables are added.
    #[must_use]
    pub fn new(version: CatalogVersion, organization_tables: Vec<Table>) -> Self {
        let tables: Vec<Arc<Table>> = organization_tables
            .into_iter()
            .chain(core_tables())
            .map(Arc::new)
            .collect();
        let by_name = tables
            .iter()
            .map(|table| (table.name.clone(), Arc::clone(table)))
            .collect();
        Self {
            version,
            tables,
            by_name,
        }
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
