//! The trash in memory.

mod access;
mod columns;
mod content;
mod tables;

use std::collections::BTreeSet;

use async_trait::async_trait;
use labdata_domain::{
    catalog::{KeyedTable, TableAccess},
    events::LoggedEventKind,
    files::{File, ObjectKey},
    ids::{ExecutionId, FileId, OrganizationId, TrashId},
    instruments::images::Annotation,
    page::{Page, PageRequest},
    people::author::Author,
    refusal::Resource,
    scalar::KeyValue,
    trash::{Deletion, RestoreRefusal, TrashEntry, TrashKind, TrashedTable},
};
use labdata_ports::{
    PortError,
    catalog::DefineError,
    trash::{PurgedEntry, RestoreError, TrashStore},
};
use time::OffsetDateTime;

use crate::{
    memory::{Owned, State, fake, owned},
    paging::page,
};

pub(crate) use columns::DroppedColumn;
pub(crate) use content::Content;
pub(crate) use tables::DroppedTable;

fake!(
    /// The trash in memory.
    pub struct InMemoryTrashStore;
);

/// An entry and what it holds.
#[derive(Clone, Debug)]
pub(crate) struct TrashRow {
    deletion: Deletion,
    pub(crate) content: Content,
}

impl State {
    /// Adds an entry; returns its row.
    fn add_to_trash(
        &mut self,
        organization: OrganizationId,
        deletion: &Deletion,
        content: Content,
    ) {
        let deletion = *deletion;
        self.trash.push(Owned {
            organization,
            thing: TrashRow { deletion, content },
        });
    }

    fn trash_row(&self, organization: OrganizationId, id: TrashId) -> Result<&TrashRow, PortError> {
        let mut rows = owned(&self.trash, organization);
        let row = rows.find(|row| row.deletion.id == id);
        row.ok_or(PortError::NotFound(Resource::TrashEntry))
    }

    fn trash_entry(
        &self,
        organization: OrganizationId,
        row: &TrashRow,
    ) -> Result<TrashEntry, PortError> {
        let TrashRow { deletion, content } = row;
        let mut users = self.users.iter();
        let user = users.find(|user| user.organization == organization && user.id == deletion.user);
        let user = user.ok_or(PortError::NotFound(Resource::User))?;
        let mut keys = self.api_keys.iter();
        let key = keys.find(|key| key.organization == organization && key.id == deletion.api_key);
        let mut name = content.name();
        if let Content::Column(dropped) = content
            && let Some(tables) = self.tables.get(&organization)
            && let Some(table) = tables
                .defined
                .iter()
                .find(|it| it.id == Some(dropped.table))
        {
            name = labdata_domain::trash::column_name(&table.name, &dropped.column.name);
        }
        Ok(TrashEntry {
            id: deletion.id,
            kind: content.kind(),
            name,
            deleted_at: deletion.at,
            deleted_by: Author::of(user, key),
            purge_at: deletion.purge_at,
            size: content.size(),
            file: match content {
                Content::File(file, _) => Some(file.id),
                Content::Table(_) | Content::Column(_) => None,
            },
            table: content.table(),
            access: self.trash_access(organization, content),
        })
    }

    /// Access to the table that an entry was, or is a column of.
    fn trash_access(&self, organization: OrganizationId, content: &Content) -> TableAccess {
        let column = match content {
            Content::File(..) => return TableAccess::default(),
            Content::Table(dropped) => return dropped.table.access.clone(),
            Content::Column(dropped) => dropped,
        };
        let defined = self.tables.get(&organization).into_iter();
        let defined = defined.flat_map(|tables| &tables.defined);
        let in_trash = owned(&self.trash, organization).filter_map(|row| match &row.content {
            Content::Table(dropped) => Some(&dropped.table),
            Content::File(..) | Content::Column(_) => None,
        });
        let mut tables = defined.chain(in_trash);
        let table = tables.find(|table| table.id == Some(column.table));
        table.map(|table| table.access.clone()).unwrap_or_default()
    }

    /// The entries of tables in the organization's trash.
    pub(crate) fn trashed_tables(&self, organization: OrganizationId) -> BTreeSet<TrashId> {
        let rows = owned(&self.trash, organization);
        let tables = rows.filter(|row| matches!(row.content, Content::Table(_)));
        tables.map(|row| row.deletion.id).collect()
    }

    /// The columns in the organization's trash.
    pub(crate) fn dropped_columns(&self, organization: OrganizationId) -> Vec<DroppedColumn> {
        let rows = owned(&self.trash, organization);
        let columns = rows.filter_map(|row| match &row.content {
            Content::Column(dropped) => Some(dropped.clone()),
            Content::File(..) | Content::Table(_) => None,
        });
        columns.collect()
    }

    /// Deletes the annotations in the trash that were saved under the execution.
    pub(crate) fn delete_trashed_annotations(
        &mut self,
        organization: OrganizationId,
        execution: ExecutionId,
    ) {
        for row in &mut self.trash {
            if row.organization == organization
                && let Content::File(_, annotations) = &mut row.thing.content
            {
                annotations.retain(|annotation| annotation.execution != Some(execution));
            }
        }
    }

    /// The annotations of the organization's trash.
    pub(crate) fn trashed_annotations(
        &self,
        organization: OrganizationId,
    ) -> impl Iterator<Item = &Annotation> {
        owned(&self.trash, organization).flat_map(|row| match &row.content {
            Content::File(_, annotations) => annotations.as_slice(),
            Content::Table(_) | Content::Column(_) => &[],
        })
    }

    /// Bytes of the organization's trash.
    pub(crate) fn trash_bytes(&self, organization: OrganizationId) -> u64 {
        let rows = owned(&self.trash, organization);
        rows.map(|row| row.content.size()).sum()
    }

    /// The files of the organization's trash.
    pub(crate) fn trashed_files(
        &self,
        organization: OrganizationId,
    ) -> impl Iterator<Item = &File> {
        owned(&self.trash, organization).filter_map(|row| match &row.content {
            Content::File(file, _) => Some(file),
            Content::Table(_) | Content::Column(_) => None,
        })
    }

    /// Purges the columns in the trash of a table that goes for good.
    pub(crate) fn purge_columns(&mut self, organization: OrganizationId, table: i64) {
        self.trash.retain(|row| {
            let is_column = matches!(
                &row.thing.content,
                Content::Column(dropped) if dropped.table == table
            );
            row.organization != organization || !is_column
        });
    }

    fn restore(
        &mut self,
        organization: OrganizationId,
        content: Content,
        now: OffsetDateTime,
    ) -> Result<(), RestoreError> {
        let event = match content {
            Content::File(file, annotations) => {
                self.restore_file(organization, &file)?;
                let annotations = annotations.into_iter();
                self.annotations.extend(annotations.map(|thing| Owned {
                    organization,
                    thing,
                }));
                LoggedEventKind::FileConfirmed(file.id)
            }
            Content::Table(mut dropped) => {
                self.restore_access(organization, &mut dropped.table.access, now)?;
                let tables = self.tables_mut(organization)?;
                *tables = tables.with_restored(dropped.clone())?;
                LoggedEventKind::TableChanged(dropped.table.name)
            }
            Content::Column(dropped) => {
                let tables = self.tables_mut(organization)?;
                let (changed, table) = tables.with_restored_column(&dropped)?;
                *tables = changed;
                LoggedEventKind::TableChanged(table)
            }
        };
        self.log_event(organization, now, event);
        Ok(())
    }

    fn restore_file(
        &mut self,
        organization: OrganizationId,
        file: &File,
    ) -> Result<(), RestoreError> {
        if let Some(instrument) = file.attribution.instrument() {
            let mut instruments = owned(&self.instruments, organization);
            if instruments.all(|known| known.id != instrument) {
                return Err(RestoreRefusal::InstrumentGone.into());
            }
            let mut others = owned(&self.files, organization);
            if others.any(|other| {
                other.attribution.instrument() == Some(instrument) && other.path == file.path
            }) {
                let kind = TrashKind::File;
                let name = file.path.as_str().to_owned();
                return Err(RestoreRefusal::NameTaken { kind, name }.into());
            }
        }
        self.files.push(Owned {
            organization,
            thing: file.clone(),
        });
        Ok(())
    }
}

#[async_trait]
impl TrashStore for InMemoryTrashStore {
    async fn delete_file(
        &self,
        organization: OrganizationId,
        id: FileId,
        deletion: &Deletion,
    ) -> Result<File, PortError> {
        let mut state = self.memory.lock();
        let annotations = owned(&state.annotations, organization);
        let annotations = annotations.filter(|annotation| annotation.file == id);
        let annotations = annotations.cloned().collect();
        let file = state.remove_file(organization, id, deletion.at)?;
        if file.place().is_some() {
            let content = Content::File(file.clone(), annotations);
            state.add_to_trash(organization, deletion, content);
        }
        Ok(file)
    }

    async fn drop_table(
        &self,
        organization: OrganizationId,
        name: &str,
        force: bool,
        deletion: &Deletion,
    ) -> Result<(), DefineError> {
        let mut state = self.memory.lock();
        let tables = state.tables_mut(organization)?;
        let dropped = tables.take_table(name, force)?;
        tables.mark_ledger(name, deletion.id);
        state.add_to_trash(organization, deletion, Content::Table(dropped));
        let changed = LoggedEventKind::TableChanged(name.to_owned());
        state.log_event(organization, deletion.at, changed);
        state.move_events(organization, (name, None), (name, Some(deletion.id)));
        Ok(())
    }

    async fn drop_column(
        &self,
        organization: OrganizationId,
        table: &str,
        column: &str,
        force: bool,
        deletion: &Deletion,
    ) -> Result<(), DefineError> {
        let mut state = self.memory.lock();
        let dropped = state
            .tables_mut(organization)?
            .take_column(table, column, force)?;
        state.add_to_trash(organization, deletion, Content::Column(dropped));
        let changed = LoggedEventKind::TableChanged(table.to_owned());
        state.log_event(organization, deletion.at, changed);
        Ok(())
    }

    async fn list(
        &self,
        organization: OrganizationId,
        request: PageRequest,
    ) -> Result<Page<TrashEntry>, PortError> {
        let state = self.memory.lock();
        let rows = owned(&state.trash, organization);
        let entries = rows.map(|row| state.trash_entry(organization, row));
        let entries = entries.collect::<Result<Vec<_>, _>>()?;
        Ok(page(entries.into_iter(), request, TrashEntry::place))
    }

    async fn get(
        &self,
        organization: OrganizationId,
        id: TrashId,
    ) -> Result<TrashEntry, PortError> {
        let state = self.memory.lock();
        state.trash_entry(organization, state.trash_row(organization, id)?)
    }

    async fn tables(&self, organization: OrganizationId) -> Result<Vec<TrashedTable>, PortError> {
        let state = self.memory.lock();
        let rows = owned(&state.trash, organization);
        let tables = rows.filter_map(|row| match &row.content {
            Content::Table(dropped) => Some(TrashedTable {
                table: dropped.table.identity(),
                access: state.trash_access(organization, &row.content),
            }),
            Content::File(..) | Content::Column(_) => None,
        });
        Ok(tables.collect())
    }

    async fn restore(
        &self,
        organization: OrganizationId,
        id: TrashId,
        now: OffsetDateTime,
    ) -> Result<TrashEntry, RestoreError> {
        let mut state = self.memory.lock();
        let row = state.trash_row(organization, id)?.clone();
        let entry = state.trash_entry(organization, &row)?;
        state.restore(organization, row.content, now)?;
        if entry.kind == TrashKind::Table {
            let tables = state.tables_mut(organization)?;
            tables.unmark_ledger(&entry.name, id);
            let name = entry.name.as_str();
            state.move_events(organization, (name, Some(id)), (name, None));
        }
        state.trash.retain(|row| row.thing.deletion.id != id);
        Ok(entry)
    }

    async fn purge(
        &self,
        organization: OrganizationId,
        id: TrashId,
    ) -> Result<PurgedEntry, PortError> {
        let mut state = self.memory.lock();
        let row = state.trash_row(organization, id)?.clone();
        let entry = state.trash_entry(organization, &row)?;
        state.trash.retain(|row| row.thing.deletion.id != id);
        let mut objects = Vec::new();
        match row.content {
            Content::File(file, annotations) => {
                objects.push(file.state.object());
                objects.extend(annotations.iter().map(|annotation| annotation.object));
            }
            Content::Table(dropped) => {
                state.purge_columns(organization, dropped.table.id.unwrap_or_default());
                state.forget_table_of_datasets(organization, &dropped.table);
                state.tables_mut(organization)?.purge_images(id);
            }
            Content::Column(_) => {}
        }
        Ok(PurgedEntry { entry, objects })
    }

    async fn due(
        &self,
        now: OffsetDateTime,
        limit: u32,
    ) -> Result<Vec<(OrganizationId, TrashId)>, PortError> {
        let state = self.memory.lock();
        let mut due: Vec<_> = state
            .trash
            .iter()
            .filter(|row| row.thing.deletion.purge_at <= now)
            .collect();
        due.sort_by_key(|row| row.thing.deletion.purge_at);
        due.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        let due = due.into_iter();
        Ok(due
            .map(|row| (row.organization, row.thing.deletion.id))
            .collect())
    }

    async fn holds_object(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
    ) -> Result<bool, PortError> {
        let state = self.memory.lock();
        let files = state.trashed_files(organization);
        let masks = state.trashed_annotations(organization);
        let mut objects = files
            .map(|file| file.state.object())
            .chain(masks.map(|mask| mask.object));
        Ok(objects.any(|held| held == object))
    }

    async fn forget_row(
        &self,
        organization: OrganizationId,
        table: &KeyedTable,
        key: &KeyValue,
    ) -> Result<bool, PortError> {
        let mut state = self.memory.lock();
        let tables = state.tables_mut(organization)?;
        let changes = tables.changes.iter();
        let own = changes.filter(|it| it.table == table.name && it.id == key.to_string());
        let series = tables.former_series_of(table, key).into_iter();
        let numbers: Vec<i64> = own.chain(series).map(|change| change.number).collect();
        let series = tables.series_of_parent(table, key);
        let mut found = false;
        let rows = state.trash.iter_mut();
        for row in rows.filter(|row| row.organization == organization) {
            found |= match &mut row.thing.content {
                Content::File(..) => false,
                Content::Table(dropped) => dropped.forget_series(table.table(), key),
                // Numbers of changes and ids of series are unique in the organization, those of rows in their table.
                Content::Column(dropped) if table.id == Some(dropped.table) => {
                    dropped.forget(Some(key), &series, &numbers)
                }
                Content::Column(dropped) => dropped.forget(None, &series, &numbers),
            };
        }
        Ok(found)
    }
}
