//! Definitions of tables in memory.

use std::sync::Arc;

use async_trait::async_trait;
use labdata_domain::{
    catalog::{
        Alteration, Catalog, CatalogChange, CatalogRefusal, Column, ColumnRef, ColumnRename, Table,
        TableDefinition,
    },
    events::LoggedEventKind,
    ids::OrganizationId,
    refusal::Resource,
};
use labdata_ports::{
    PortError,
    catalog::{CatalogStore, DefineError},
};
use time::OffsetDateTime;

use crate::{
    data::tables::{Cells, Tables, cell},
    memory::fake,
};

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
        if let Some(changed) = tables.defined_as(definition)? {
            *tables = changed;
            let changed = LoggedEventKind::TableChanged(definition.name.clone());
            state.log_event(organization, now, changed);
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
        let catalog = tables.catalog();
        let table = catalog
            .table(name)
            .ok_or(PortError::NotFound(Resource::Table))?;
        let has_points = tables
            .series_of(name)
            .iter()
            .any(|series| !series.points.is_empty());
        let is_empty = !has_points && tables.rows_of(name).next().is_none();
        catalog.check_drop(table, is_empty, force)?;
        tables.defined.retain(|table| table.name != name);
        tables.rows.remove(name);
        tables.series.remove(name);
        tables.version += 1;
        let dropped = LoggedEventKind::TableChanged(name.to_owned());
        state.log_event(organization, now, dropped);
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
        let tables = state.tables_mut(organization)?;
        let catalog = tables.catalog();
        let found = catalog
            .table(table)
            .ok_or(PortError::NotFound(Resource::Table))?;
        let dropped = found
            .column_to_drop(column)?
            .ok_or(PortError::NotFound(Resource::Column))?;
        let mut cells = tables.cells_of(table);
        let holds_values = cells.any(|cells| cell(cells, dropped).is_some());
        drop(cells);
        found.check_dropped_values(dropped, holds_values, force)?;
        tables.remove_column(table, dropped);
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
                    after,
                    added,
                    renamed,
                    ..
                } = *alteration;
                for rename in &renamed {
                    tables.rename(&after.name, rename);
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

    /// Removes a column from a table, its rows and its points.
    fn remove_column(&mut self, name: &str, dropped: &ColumnRef) {
        for table in self.defined.iter_mut().filter(|table| table.name == name) {
            table.columns = table.columns.without(dropped);
        }
        for cells in self.cells_mut(name) {
            cells.remove(&*dropped.sql_name());
        }
        self.version += 1;
    }

    fn rename(&mut self, table: &str, ColumnRename { before, after }: &ColumnRename) {
        for cells in self.cells_mut(table) {
            let value = cells.remove(&*before.sql_name());
            cells.extend(value.map(|value| (after.sql_name().into_owned(), value)));
        }
    }

    /// The cells of all rows and points of a table.
    fn cells_mut(&mut self, table: &str) -> impl Iterator<Item = &mut Cells> {
        let rows = self.rows.get_mut(table).into_iter();
        let rows = rows.flat_map(|rows| rows.values_mut().map(|row| &mut row.cells));
        let series = self.series.get_mut(table).into_iter().flatten();
        let points = series.flat_map(|series| &mut series.points);
        rows.chain(points.map(|(_, cells)| cells))
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
        for row in rows.flat_map(|rows| rows.values_mut()) {
            let defaults = added.iter().filter_map(|column| {
                let value = column.default_value()?;
                Some((column.sql_name().into_owned(), value))
            });
            row.cells.extend(defaults);
        }
    }
}
