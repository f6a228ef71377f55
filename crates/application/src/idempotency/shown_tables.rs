//! Tables whose data a response shows.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use labdata_domain::catalog::TableIdentity;

/// Tables whose data the response of a unit of work shows. Use cases add theirs, and the stored response is repeated only
/// to callers who may see all of them. Outside of a unit no response is stored, and none are collected.
#[derive(Clone, Debug, Default)]
pub struct ShownTables(Option<Arc<Mutex<BTreeSet<TableIdentity>>>>);

impl ShownTables {
    /// Adds tables.
    pub(crate) fn add(&self, tables: impl IntoIterator<Item = TableIdentity>) {
        if let Some(collected) = &self.0 {
            let mut collected = collected.lock().unwrap_or_else(PoisonError::into_inner);
            collected.extend(tables);
        }
    }

    /// Those of a unit of work: of one within another, the tables of that one.
    pub(super) fn in_unit(&self) -> Self {
        Self(Some(self.0.clone().unwrap_or_default()))
    }

    /// All that were added.
    pub(super) fn all(&self) -> Vec<TableIdentity> {
        let collected = self.0.as_deref().map(|collected| {
            let collected = collected.lock().unwrap_or_else(PoisonError::into_inner);
            collected.iter().cloned().collect()
        });
        collected.unwrap_or_default()
    }
}
