//! Changes of the definitions of tables.

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Bool, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use labdata_domain::{
    catalog::{
        Alteration, Catalog, CatalogChange, CatalogRefusal, Column, ColumnChange, ColumnRef,
        Origin, Table, TableDefinition,
    },
    events::LoggedEventKind,
    ids::OrganizationId,
    refusal::Resource,
};
use labdata_ports::{PortError, catalog::DefineError};
use time::OffsetDateTime;

use super::{
    ddl,
    history::{
        default_in_history, drop_from_history, forget_history, merge_arrays, rename_in_history,
    },
    load::{LoadError, load_catalog},
    lock_name,
    row_images::{drop_from_images, drop_images, rename_in_images},
    save::{
        delete_column, id_of, rename_column, rename_table, save_access, save_column,
        save_unique_together,
    },
};
use crate::{
    data::query::drop_views_over,
    database::{
        errors::port_error,
        sql::{Schemas, statement},
        violation::violation_of,
    },
    events::record::record,
    maintenance::backup::keep_from_dumps,
    models::forget_table,
    outward::sql_logins::rights::grant_after_change,
    trash::{
        purge_columns,
        tables::{PURGED, mark_records},
    },
};

#[derive(QueryableByName)]
struct IdRow {
    #[diesel(sql_type = BigInt)]
    id: i64,
}

#[derive(QueryableByName)]
struct ExistsRow {
    #[diesel(sql_type = Bool)]
    found: bool,
}

/// A change of an organization's definitions.
pub(super) enum Change<'c> {
    Define(&'c TableDefinition),
    Drop {
        name: &'c str,
        force: bool,
    },
    DropColumn {
        table: &'c str,
        column: &'c str,
        force: bool,
    },
}

impl Change<'_> {
    /// Takes the organization's lock, compares with the definitions then, and makes the change.
    pub(super) async fn carry_out(
        &self,
        connection: &mut AsyncPgConnection,
        organization: OrganizationId,
        now: OffsetDateTime,
    ) -> Result<Catalog, DefineError> {
        lock_definitions(connection, organization).await?;
        let current = load(connection, organization).await?;
        let schemas = Schemas::of(organization);
        let changed = match self {
            Self::Define(definition) => {
                define(
                    connection,
                    organization,
                    &schemas,
                    &current,
                    definition,
                    now,
                )
                .await?
            }
            Self::Drop { name, force } => {
                let table = current
                    .table(name)
                    .ok_or(PortError::NotFound(Resource::Table))?;
                // Writes hold the lock in shared mode, so no row arrives after this look.
                let is_empty = is_empty(connection, &schemas, table).await?;
                current.check_drop(table, is_empty, *force)?;
                keep_from_dumps(connection).await?;
                uncover(connection, organization, table).await?;
                run(connection, &ddl::drop_table(&schemas, table)).await?;
                purge_columns(connection, organization, id_of(table)?).await?;
                forget_table(connection, organization, &table.identity(), &table.access).await?;
                drop_images(connection, organization, name).await?;
                undefine(connection, organization, table).await?;
                true
            }
            Self::DropColumn {
                table,
                column,
                force,
            } => {
                let table = current
                    .table(table)
                    .ok_or(PortError::NotFound(Resource::Table))?;
                let column = table
                    .column_to_drop(column)?
                    .ok_or(PortError::NotFound(Resource::Column))?;
                let holds_values = holds_values(connection, &schemas, table, column).await?;
                table.check_dropped_values(column, holds_values, *force)?;
                keep_from_dumps(connection).await?;
                uncover(connection, organization, table).await?;
                drop_column(connection, &schemas, table, column).await?;
                merge_arrays(connection, organization, table).await?;
                drop_from_history(connection, organization, table, column).await?;
                drop_from_images(connection, organization, table, column).await?;
                true
            }
        };
        // Every new version would make all servers load the catalog again.
        if !changed {
            return Ok(current);
        }
        let tables = std::iter::once(self.table()).chain(self.former_name(&current));
        let tables: Vec<&str> = tables.collect();
        announce(connection, organization, &tables, now).await?;
        // Of the former name of a renamed table there is the event that announces it, which is of no table by now.
        let nameless = match self {
            Self::Drop { name, .. } => Some(*name),
            Self::Define(_) | Self::DropColumn { .. } => self.former_name(&current),
        };
        if let Some(name) = nameless {
            mark_records(connection, organization, name, PURGED).await?;
        }
        // Read back, because the database gave tables and columns their ids.
        let changed = load(connection, organization).await?;
        // A table that bore the name of a core table was renamed or dropped.
        let freed = changed.tables().iter().filter(|table| {
            let before = current.table(&table.name);
            table.origin == Origin::Core && before.is_none_or(|it| it.origin != Origin::Core)
        });
        let mut is_any_freed = false;
        for table in freed {
            run(connection, &ddl::create_table(&schemas, table)).await?;
            is_any_freed = true;
        }
        if is_any_freed {
            grant_after_change(connection, organization).await?;
        }
        Ok(changed)
    }

    /// The former name of a table that is renamed.
    fn former_name(&self, current: &Catalog) -> Option<&str> {
        match self {
            Self::Define(definition) => definition.former_name(current),
            Self::Drop { .. } | Self::DropColumn { .. } => None,
        }
    }

    /// The name of the table.
    fn table(&self) -> &str {
        match self {
            Self::Define(definition) => &definition.name,
            Self::Drop { name, .. } => name,
            Self::DropColumn { table, .. } => table,
        }
    }
}

/// Makes other changes of the organization's definitions wait for the end of the transaction, and writes, which
/// hold the lock in shared mode. MUST come before the catalog is read.
pub(crate) async fn lock_definitions(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
) -> Result<(), PortError> {
    // A change of a large table is long, and records events of its organization only.
    let declare = crate::events::declare(organization);
    let lock = format!("SELECT pg_advisory_xact_lock(labdata.lock_key($1)), {declare}");
    diesel::sql_query(lock)
        .bind::<Text, _>(lock_name(organization))
        .execute(connection)
        .await
        .map_err(port_error)?;
    Ok(())
}

/// Makes all servers load the definitions again, grants SQL logins what follows from them, and records
/// the events of changed tables.
pub(crate) async fn announce(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    tables: &[&str],
    now: OffsetDateTime,
) -> Result<(), PortError> {
    diesel::sql_query(
        "UPDATE labdata.organization SET catalog_version = catalog_version + 1 WHERE id = $1",
    )
    .bind::<SqlUuid, _>(organization.as_uuid())
    .execute(connection)
    .await
    .map_err(port_error)?;
    // Before the commit: no role may read a table that its user may not see by the new definitions.
    grant_after_change(connection, organization).await?;
    let tables = tables.iter();
    let events: Vec<LoggedEventKind> = tables
        .map(|table| LoggedEventKind::TableChanged((*table).to_owned()))
        .collect();
    record(connection, organization, now, &events)
        .await
        .map_err(port_error)
}

/// The definitions of now.
pub(crate) async fn load(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
) -> Result<Catalog, DefineError> {
    load_catalog(connection, organization)
        .await
        .map_err(|error| match error {
            LoadError::Database(error) => port_error(error).into(),
            LoadError::Port(error) => error.into(),
        })
}

/// Stored rows that violate a constraint refuse the change; anything else is the port's failure.
pub(crate) fn define_error(error: diesel::result::Error) -> DefineError {
    match violation_of(&error) {
        Some(violation) => CatalogRefusal::Violation(violation).into(),
        None => DefineError::Port(port_error(error)),
    }
}

/// Drops what queries see of a table, which would hinder its change.
pub(crate) async fn uncover(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    table: &Table,
) -> Result<(), DefineError> {
    let uncovered = drop_views_over(connection, organization, &table.sql_name()).await;
    Ok(uncovered.map_err(port_error)?)
}

/// Runs statements one after another.
pub(crate) async fn run(
    connection: &mut AsyncPgConnection,
    statements: &[String],
) -> Result<(), DefineError> {
    for statement in statements {
        connection
            .batch_execute(statement)
            .await
            .map_err(define_error)?;
    }
    Ok(())
}

async fn define(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    schemas: &Schemas,
    current: &Catalog,
    definition: &TableDefinition,
    now: OffsetDateTime,
) -> Result<bool, DefineError> {
    match CatalogChange::towards(definition, current)? {
        CatalogChange::Nothing => return Ok(false),
        CatalogChange::Create(table) => {
            run(connection, &ddl::create_table(schemas, &table)).await?;
            let created: IdRow = diesel::sql_query(
                "INSERT INTO labdata.catalog_table (organization_id, name, description, semantic_category, history, history_since) \
                 VALUES ($1, $2, $3, $4, $5, $6) RETURNING id",
            )
            .bind::<SqlUuid, _>(organization.as_uuid())
            .bind::<Text, _>(&table.name)
            .bind::<Nullable<Text>, _>(&table.description)
            .bind::<Text, _>(table.category.as_str())
            .bind::<Bool, _>(table.history)
            .bind::<Timestamptz, _>(now)
            .get_result(connection)
            .await
            .map_err(port_error)?;
            for (position, column) in table.columns.iter().enumerate() {
                save_column(connection, created.id, position, column).await?;
            }
            save_unique_together(connection, created.id, &table).await?;
            save_access(connection, organization, created.id, &table.access).await?;
        }
        CatalogChange::Alter(alteration) => {
            let Alteration {
                former_name,
                renamed,
                after,
                added,
                changed,
                ..
            } = alteration.as_ref();
            let id = id_of(after)?;
            keep_from_dumps(connection).await?;
            let former = former_name.as_ref().unwrap_or(&after.name);
            if let Some(table) = current.table(former) {
                uncover(connection, organization, table).await?;
            }
            // Names first: all later statements use the new ones, those about recorded changes as well.
            run(connection, &ddl::rename(schemas, &alteration)).await?;
            if let Some(former) = former_name {
                rename_table(connection, organization, former, &after.name).await?;
            }
            let retyped: Vec<_> = changed.iter().filter(|it| it.is_retyped()).collect();
            if !renamed.is_empty() || !retyped.is_empty() {
                merge_arrays(connection, organization, after).await?;
            }
            for rename in renamed {
                rename_column(connection, id, rename).await?;
                rename_in_history(connection, organization, after, rename).await?;
                rename_in_images(connection, organization, after, rename).await?;
            }
            // Before the types are checked: recorded values that are deleted anyway must not refuse a change.
            if !after.history {
                forget_history(connection, organization, &after.name).await?;
            }
            // Before the conversion, which would round without a word.
            for change in &retyped {
                require_exact(connection, organization, after, change).await?;
            }
            run(connection, &ddl::alter_table(schemas, &alteration)).await?;
            let recorded = retyped.iter();
            let recorded = recorded.filter_map(|it| ddl::retype_recorded(organization, after, it));
            run(connection, &recorded.collect::<Vec<_>>()).await?;
            for column in added {
                default_in_history(connection, organization, after, column).await?;
            }
            diesel::sql_query(
                // Read on the right side, `history` is the old value: a history that was off until now begins now.
                "UPDATE labdata.catalog_table SET description = $2, history = $3, \
                 history_since = CASE WHEN history THEN history_since ELSE $4 END WHERE id = $1",
            )
            .bind::<BigInt, _>(id)
            .bind::<Nullable<Text>, _>(&after.description)
            .bind::<Bool, _>(after.history)
            .bind::<Timestamptz, _>(now)
            .execute(connection)
            .await
            .map_err(port_error)?;
            for (position, column) in after.columns.iter().enumerate() {
                save_column(connection, id, position, column).await?;
            }
            save_unique_together(connection, id, after).await?;
            save_access(connection, organization, id, &after.access).await?;
        }
    }
    Ok(true)
}

/// Refuses a new type of a column that cannot store all of its values exactly.
async fn require_exact(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    table: &Table,
    change: &ColumnChange,
) -> Result<(), DefineError> {
    let Some(query) = ddl::inexact_values(organization, table, change) else {
        return Ok(());
    };
    let values: Vec<IdRow> = statement(query)
        .load(connection)
        .await
        .map_err(port_error)?;
    if values.is_empty() {
        return Ok(());
    }
    let values = values.into_iter().map(|row| row.id.to_string()).collect();
    Err(change.inexact(table, values).into())
}

/// Returns whether a table holds neither rows nor points.
pub(crate) async fn is_empty(
    connection: &mut AsyncPgConnection,
    schemas: &Schemas,
    table: &Table,
) -> Result<bool, DefineError> {
    Ok(!exists(connection, &ddl::stored_table(schemas, table), "true").await?)
}

/// Returns whether a row or point has a value in the column.
pub(crate) async fn holds_values(
    connection: &mut AsyncPgConnection,
    schemas: &Schemas,
    table: &Table,
    column: &Column,
) -> Result<bool, DefineError> {
    let condition = ddl::holds_value(table, column);
    exists(connection, &ddl::stored_table(schemas, table), &condition).await
}

/// Returns whether a table has a row that meets the condition.
pub(crate) async fn exists(
    connection: &mut AsyncPgConnection,
    table: &str,
    condition: &str,
) -> Result<bool, DefineError> {
    let row: ExistsRow = statement(format!(
        // Ends at the first row, where a count would read the whole table.
        "SELECT EXISTS (SELECT FROM {table} WHERE {condition}) AS found"
    ))
    .get_result(connection)
    .await
    .map_err(port_error)?;
    Ok(row.found)
}

/// Drops a column, with its values.
pub(crate) async fn drop_column(
    connection: &mut AsyncPgConnection,
    schemas: &Schemas,
    table: &Table,
    column: &ColumnRef,
) -> Result<(), DefineError> {
    run(connection, &ddl::drop_column(schemas, table, column)).await?;
    delete_column(connection, id_of(table)?, &column.name).await
}

/// Removes a table from the definitions, and its recorded changes.
pub(crate) async fn undefine(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
    table: &Table,
) -> Result<(), DefineError> {
    forget_history(connection, organization, &table.name).await?;
    diesel::sql_query("DELETE FROM labdata.catalog_table WHERE organization_id = $1 AND name = $2")
        .bind::<SqlUuid, _>(organization.as_uuid())
        .bind::<Text, _>(&table.name)
        .execute(connection)
        .await
        .map_err(port_error)?;
    Ok(())
}
