//! Values of changed rows that the ledger retains.

use std::collections::BTreeMap;

use labdata_domain::{
    data::{read::RowJson, write::RowImage},
    ids::TrashId,
};
use serde_json::{Map, Value};

use super::tables::Tables;

/// Values of a column: place of the retained row among those of its table, whether it is that after the change.
pub(crate) type RetainedValues = BTreeMap<(usize, bool), Value>;

impl Tables {
    /// Visits the retained rows of a table.
    fn images_mut(&mut self, table: &str) -> impl Iterator<Item = &mut RowImage> {
        let recorded = self.ledger.iter_mut();
        let own = recorded.filter(move |it| it.trash.is_none() && it.entry.table == table);
        own.flat_map(|recorded| &mut recorded.entry.stored)
    }

    /// Changes the values of each retained row of a table.
    pub(crate) fn rewrite_images(&mut self, table: &str, change: impl Fn(&mut Map<String, Value>)) {
        for image in self.images_mut(table) {
            for row in [&mut image.before, &mut image.after].into_iter().flatten() {
                let mut values = serde_json::from_str(row.as_str()).unwrap_or_default();
                change(&mut values);
                *row = RowJson::from_rendered(Value::Object(values).to_string());
            }
        }
    }

    /// The values that retained rows of a table have in a column, by their places.
    pub(crate) fn images_of(&mut self, table: &str, column: &str) -> RetainedValues {
        let mut values = RetainedValues::new();
        for (place, image) in self.images_mut(table).enumerate() {
            for (row, is_after) in [(&image.before, false), (&image.after, true)] {
                let row = row.as_ref().map(RowJson::as_str);
                let row = row.and_then(|row| serde_json::from_str::<Map<String, Value>>(row).ok());
                let value = row.and_then(|mut row| row.remove(column));
                values.extend(value.map(|value| ((place, is_after), value)));
            }
        }
        values
    }

    /// Adds a column's values again.
    pub(crate) fn give_images_back(&mut self, table: &str, column: &str, values: &RetainedValues) {
        for (place, image) in self.images_mut(table).enumerate() {
            for (row, is_after) in [(&mut image.before, false), (&mut image.after, true)] {
                if let (Some(row), Some(value)) = (row, values.get(&(place, is_after))) {
                    let known = serde_json::from_str(row.as_str());
                    let mut known: Map<String, Value> = known.unwrap_or_default();
                    known.insert(column.to_owned(), value.clone());
                    *row = RowJson::from_rendered(Value::Object(known).to_string());
                }
            }
        }
    }

    /// Forgets the retained values of a row; returns whether there were any.
    pub(crate) fn forget_images(&mut self, table: &str, id: &str) -> bool {
        let mut found = false;
        for image in self.images_mut(table).filter(|image| image.id == id) {
            found |= image.before.take().is_some();
            found |= image.after.take().is_some();
        }
        found
    }

    /// Deletes the retained rows of a table that is dropped for good.
    pub(crate) fn drop_images(&mut self, table: &str) {
        for recorded in &mut self.ledger {
            if recorded.trash.is_none() && recorded.entry.table == table {
                recorded.entry.stored.clear();
            }
        }
    }

    /// Marks what the ledger has of a table that moves into the trash.
    pub(crate) fn mark_ledger(&mut self, table: &str, trash: TrashId) {
        for recorded in &mut self.ledger {
            if recorded.trash.is_none() && recorded.entry.table == table {
                recorded.trash = Some(trash);
            }
        }
    }

    /// Gives a restored table what the ledger has of it.
    pub(crate) fn unmark_ledger(&mut self, table: &str, trash: TrashId) {
        for recorded in &mut self.ledger {
            if recorded.trash == Some(trash) {
                recorded.trash = None;
                table.clone_into(&mut recorded.entry.table);
            }
        }
    }

    /// Deletes the retained rows of a table that is purged.
    pub(crate) fn purge_images(&mut self, trash: TrashId) {
        for recorded in &mut self.ledger {
            if recorded.trash == Some(trash) {
                recorded.entry.stored.clear();
            }
        }
    }
}
