//! Targets of reads.

use std::sync::Arc;

use super::field::{Field, field};
use crate::catalog::{Catalog, Origin, PlatformTable, Table};

/// Target of a read.
#[derive(Clone, Debug, PartialEq)]
pub enum ReadTarget {
    /// A table of the organization or a core table.
    Table(Arc<Table>),
    /// A table of the platform itself.
    Platform(PlatformTable),
}

impl ReadTarget {
    /// Finds the target of that name and kind.
    #[must_use]
    pub fn find(catalog: &Catalog, name: &str, core: bool) -> Option<Self> {
        let table = catalog
            .table(name)
            .filter(|table| (table.origin == Origin::Core) == core);
        match table {
            Some(table) => Some(Self::Table(Arc::clone(table))),
            None if core => PlatformTable::from_name(name).map(Self::Platform),
            None => None,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Table(table) => &table.name,
            Self::Platform(table) => table.as_str(),
        }
    }

    /// Finds a column by its name in writes, or by its SQL name.
    pub(super) fn field(&self, name: &str) -> Option<Field> {
        match self {
            ReadTarget::Platform(table) => {
                let mut columns = table.columns().iter();
                columns.find(|column| column.name == name).map(|it| Field {
                    sql_name: it.name.to_owned(),
                    data_type: it.data_type,
                })
            }
            ReadTarget::Table(table) => field(table, name),
        }
    }

    /// SQL name of the primary key; `None` for points.
    pub(super) fn key_name(&self) -> Option<&str> {
        match self {
            Self::Table(table) => table.primary_key().map(|key| key.name.as_str()),
            Self::Platform(table) => table.columns().first().map(|key| key.name),
        }
    }
}
