//! Definitions of tables in memory.

use std::{cmp::Ordering, sync::Arc};

use async_trait::async_trait;
use labdata_domain::{
    catalog::{
        Alteration, Catalog, CatalogChange, CatalogRefusal, Column, ColumnChange, ColumnRef,
        ColumnRename, MAX_INEXACT_VALUES, Table, TableDefinition,
    },
    events::LoggedEventKind,
    ids::{OrganizationId, TrashId},
};
use labdata_ports::{
    PortError,
    catalog::{CatalogStore, DefineError},
};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    data::{
        history::Stored,
        tables::{Cells, Tables},
    },
    memory::fake,
};

/// The entry in the trash of tables that were dropped without one.
const PURGED: TrashId = TrashId::new(Uuid::nil());

fake!(
    /// Definitions of tables in memory.
    pub struct InMemoryCatalogStore;
);

#[async_trait]
impl CatalogStore for InMemoryCatalogStore {
    async fn snapshot(&self, organization: OrganizationId) -> Result<Arc<Catalog>, PortError> {
        Ok(Arc::new(
            self.memory.lock().tables_mut(organization)?.catalog(),
        ))
    }

    async fn define(
        &self,
        organization: OrganizationId,
        definition: &TableDefinition,
        now: OffsetDateTime,
    ) -> Result<Arc<Table>, DefineError> {
        let mut state = self.memory.lock();
        let tables = state.tables_mut(organization)?;
        let before = tables.catalog();
        if let Some(mut changed) = tables.defined_as(definition)? {
            changed.know_since(&before, definition, now);
            *tables = changed;
            let former = definition.former_name(&before);
            if let Some(former) = former {
                state.rename_in_webhooks(organization, former, &definition.name);
                state.move_events(organization, (former, None), (&definition.name, None));
            }
            for name in std::iter::once(definition.name.as_str()).chain(former) {
                let changed = LoggedEventKind::TableChanged(name.to_owned());
                state.log_event(organization, now, changed);
            }
            if let Some(former) = former {
                // What announces the former name is of no table by now.
                state.move_events(organization, (former, None), (former, Some(PURGED)));
            }
        }
        let catalog = state.tables_mut(organization)?.catalog();
        let table = catalog.table(&definition.name).cloned();
        table.ok_or_else(|| PortError::Internal("a defined table is missing".to_owned()).into())
    }

    async fn drop_table(
        &self,
        organization: OrganizationId,
        name: &str,
        force: bool,
        now: OffsetDateTime,
    ) -> Result<(), DefineError> {
        let mut state = self.memory.lock();
        let tables = state.tables_mut(organization)?;
        let dropped = tables.take_table(name, force)?;
        tables.drop_images(name);
        tables.mark_ledger(name, PURGED);
        state.purge_columns(organization, dropped.table.id.unwrap_or_default());
        state.forget_table_of_datasets(organization, &dropped.table);
        let dropped = LoggedEventKind::TableChanged(name.to_owned());
        state.log_event(organization, now, dropped);
        state.move_events(organization, (name, None), (name, Some(PURGED)));
        Ok(())
    }

    async fn drop_column(
        &self,
        organization: OrganizationId,
        table: &str,
        column: &str,
        force: bool,
        now: OffsetDateTime,
    ) -> Result<(), DefineError> {
        let mut state = self.memory.lock();
        state
            .tables_mut(organization)?
            .take_column(table, column, force)?;
        let changed = LoggedEventKind::TableChanged(table.to_owned());
        state.log_event(organization, now, changed);
        Ok(())
    }
}

impl Tables {
    /// The tables with one of them as defined; `None` if it is as defined already.
    fn defined_as(&self, definition: &TableDefinition) -> Result<Option<Self>, CatalogRefusal> {
        let change = CatalogChange::towards(definition, &self.catalog())?;
        let mut tables = self.clone();
        tables.version += 1;
        match change {
            CatalogChange::Nothing => return Ok(None),
            CatalogChange::Create(table) => {
                let table = tables.with_ids(table, definition);
                tables.defined.push(table);
            }
            CatalogChange::Alter(alteration) => {
                let Alteration {
                    former_name,
                    after,
                    added,
                    renamed,
                    changed,
                    ..
                } = *alteration;
                if let Some(former) = &former_name {
                    tables.rename_table(former, &after.name);
                }
                for rename in &renamed {
                    tables.rename(&after.name, rename);
                }
                if !after.history {
                    tables.changes.retain(|change| change.table != after.name);
                    let deleted = &mut tables.deleted_versions;
                    deleted.retain(|(table, _), _| *table != after.name);
                }
                for change in changed.iter().filter(|change| change.is_retyped()) {
                    tables.retype(&after, change)?;
                }
                tables.fill(&after, &added);
                let after = tables.with_ids(after, definition);
                for table in tables
                    .defined
                    .iter_mut()
                    .filter(|table| table.name == after.name)
                {
                    *table = after.clone();
                }
            }
        }
        match tables.violation() {
            None => Ok(Some(tables)),
            Some(violation) => Err(CatalogRefusal::Violation(violation)),
        }
    }

    /// Notes since when a table is known that was created, or got a history.
    fn know_since(&mut self, before: &Catalog, definition: &TableDefinition, now: OffsetDateTime) {
        let former = definition.former_name(before).unwrap_or(&definition.name);
        let had_history = before.table(former).is_some_and(|table| table.history);
        if !had_history {
            self.known_since.insert(definition.name.clone(), now);
        }
    }

    /// Removes a column from a table, its rows and its points.
    pub(crate) fn remove_column(&mut self, name: &str, dropped: &ColumnRef) {
        for table in self.defined.iter_mut().filter(|table| table.name == name) {
            table.columns = table.columns.without(dropped);
        }
        let sql_name = dropped.sql_name();
        self.cells_mut(name)
            .for_each(|cells| drop(cells.remove(&*sql_name)));
        self.former_cells_mut(name)
            .for_each(|cells| drop(cells.remove(&*sql_name)));
        self.rewrite_images(name, |values| drop(values.remove(&dropped.name)));
        self.version += 1;
    }

    fn rename(&mut self, table: &str, ColumnRename { before, after }: &ColumnRename) {
        let rename = |cells: &mut Cells| {
            let value = cells.remove(&*before.sql_name());
            cells.extend(value.map(|value| (after.sql_name().into_owned(), value)));
        };
        self.cells_mut(table).for_each(rename);
        self.former_cells_mut(table).for_each(rename);
        self.rewrite_images(table, |values| {
            let value = values.remove(&before.name);
            values.extend(value.map(|value| (after.name.clone(), value)));
        });
    }

    /// Gives a table another name, wherever it is named.
    fn rename_table(&mut self, from: &str, to: &str) {
        for table in &mut self.defined {
            if table.name == from {
                to.clone_into(&mut table.name);
            }
            table.columns.update(|column| {
                if column.references.as_deref() == Some(from) {
                    column.references = Some(to.to_owned());
                }
            });
        }
        if let Some(rows) = self.rows.remove(from) {
            self.rows.insert(to.to_owned(), rows);
        }
        if let Some(series) = self.series.remove(from) {
            self.series.insert(to.to_owned(), series);
        }
        if let Some(since) = self.known_since.remove(from) {
            self.known_since.insert(to.to_owned(), since);
        }
        let deleted = std::mem::take(&mut self.deleted_versions).into_iter();
        let renamed = deleted.map(|((table, id), versions)| {
            let table = if table == from { to.to_owned() } else { table };
            ((table, id), versions)
        });
        self.deleted_versions = renamed.collect();
        for change in self.changes.iter_mut().filter(|it| it.table == from) {
            to.clone_into(&mut change.table);
        }
        for recorded in &mut self.ledger {
            if recorded.trash.is_none() && recorded.entry.table == from {
                to.clone_into(&mut recorded.entry.table);
            }
        }
    }

    /// Converts the values of a column to its new type.
    fn retype(&mut self, table: &Table, change: &ColumnChange) -> Result<(), CatalogRefusal> {
        let name = change.after.sql_name();
        let mut inexact = Vec::new();
        let mut convert = |cells: &mut Cells| {
            if let Some(value) = cells.get_mut(&*name) {
                match value.converted(change.after.data_type) {
                    Some(converted) => *value = converted,
                    None => inexact.push(value.clone()),
                }
            }
        };
        self.cells_mut(&table.name).for_each(&mut convert);
        self.former_cells_mut(&table.name).for_each(&mut convert);
        if change.after.is_primary_key {
            self.rekey(&table.name, &name);
        }
        if inexact.is_empty() {
            return Ok(());
        }
        inexact.sort_by(|left, right| left.compare(right).unwrap_or(Ordering::Equal));
        inexact.dedup();
        let values = inexact.iter().take(MAX_INEXACT_VALUES);
        let values = values.map(|value| value.to_json().to_string()).collect();
        Err(change.inexact(table, values))
    }

    /// Files the rows of a table under the values of their primary key.
    fn rekey(&mut self, table: &str, key: &str) {
        let rows = self.rows.remove(table).unwrap_or_default();
        let rows = rows.into_values().filter_map(|row| {
            let key = row.cells.get(key).cloned()?.into_key()?;
            Some((key, row))
        });
        self.rows.insert(table.to_owned(), rows.collect());
    }

    /// The cells of all rows and points of a table.
    fn cells_mut(&mut self, table: &str) -> impl Iterator<Item = &mut Cells> {
        let rows = self.rows.get_mut(table).into_iter();
        let rows = rows.flat_map(|rows| rows.values_mut().map(|row| &mut row.cells));
        let series = self.series.get_mut(table).into_iter().flatten();
        let points = series.flat_map(|series| &mut series.points);
        rows.chain(points.map(|(_, cells)| cells))
    }

    /// The cells of all rows and points of a table in its recorded changes.
    fn former_cells_mut(&mut self, table: &str) -> impl Iterator<Item = &mut Cells> {
        let changes = self.changes.iter_mut().filter(move |it| it.table == table);
        changes.flat_map(|change| match &mut change.before {
            Some(Stored::Row(row)) => vec![&mut row.cells],
            Some(Stored::Series(series)) => {
                series.points.iter_mut().map(|(_, cells)| cells).collect()
            }
            None => Vec::new(),
        })
    }

    /// Gives ids to the table and to those defined columns that have none yet.
    fn with_ids(&mut self, mut table: Table, definition: &TableDefinition) -> Table {
        table.id = table.id.or_else(|| Some(self.next_id()));
        table.columns.update(|column| {
            let mut defined = definition.columns.iter();
            if defined.any(|defined| defined.name == column.name) {
                column.id = column.id.or_else(|| Some(self.next_id()));
            }
        });
        table
    }

    /// Gives stored rows the defaults of new columns; points have null.
    fn fill(&mut self, table: &Table, added: &[Column]) {
        let rows = self.rows.get_mut(&table.name).into_iter();
        let rows = rows.flat_map(|rows| rows.values_mut());
        let former = self.changes.iter_mut();
        let former = former.filter_map(|change| match &mut change.before {
            Some(Stored::Row(row)) if change.table == table.name => Some(row),
            _ => None,
        });
        for row in rows.chain(former) {
            let defaults = added.iter().filter_map(|column| {
                let value = column.default_value()?;
                Some((column.sql_name().into_owned(), value))
            });
            row.cells.extend(defaults);
        }
    }
}
