//! Definitions of tables in memory.

use std::sync::Arc;

use async_trait::async_trait;
use labdata_domain::{
    catalog::{Alteration, Catalog, CatalogChange, CatalogRefusal, Column, Table, TableDefinition},
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
    data::tables::{Tables, cell},
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
        let (index, dropped) = found
            .column_to_drop(column)?
            .ok_or(PortError::NotFound(Resource::Column))?;
        let mut cells = tables.cells_of(table);
        let holds_values = cells.any(|cells| cell(cells, index).is_some());
        drop(cells);
        found.check_dropped_values(dropped, holds_values, force)?;
        tables.remove_column(table, index);
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
                let Alteration { after, added, .. } = *alteration;
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
    fn remove_column(&mut self, name: &str, index: usize) {
        for table in self.defined.iter_mut().filter(|table| table.name == name) {
            table.columns.remove(index);
        }
        let rows = self.rows.get_mut(name).into_iter();
        for row in rows.flat_map(|rows| rows.values_mut()) {
            row.cells.remove(index);
        }
        let series = self.series.get_mut(name).into_iter().flatten();
        for (_, cells) in series.flat_map(|series| &mut series.points) {
            cells.remove(index);
        }
        self.version += 1;
    }

    /// Gives ids to the table and to those defined columns that have none yet.
    fn with_ids(&mut self, mut table: Table, definition: &TableDefinition) -> Table {
        table.id = table.id.or_else(|| Some(self.next_id()));
        for column in &mut table.columns {
            if definition
                .columns
                .iter()
                .any(|defined| defined.name == column.name)
            {
                column.id = column.id.or_else(|| Some(self.next_id()));
            }
        }
        table
    }

    /// Appends new columns to stored rows, with the default, and to stored points, with null.
    fn fill(&mut self, table: &Table, added: &[Column]) {
        for column in added {
            let default = column.default_value();
            for row in self
                .rows
                .get_mut(&table.name)
                .into_iter()
                .flat_map(|rows| rows.values_mut())
            {
                row.cells.push(default.clone());
            }
            for series in self.series.get_mut(&table.name).into_iter().flatten() {
                series
                    .points
                    .iter_mut()
                    .for_each(|(_, cells)| cells.push(None));
            }
        }
    }
}
