//! Reads an organization's definitions.

use diesel::{
    OptionalExtension, QueryableByName,
    sql_types::{Array, BigInt, Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use labdata_domain::{
    catalog::{Catalog, CatalogVersion, Column, Origin, SemanticCategory, Table, TableAccess},
    ids::OrganizationId,
    refusal::Resource,
    scalar::DataType,
};
use labdata_ports::PortError;
use serde::Deserialize;
use serde_json::Value;

use crate::database::errors::Fault;

#[derive(QueryableByName)]
struct Loaded {
    #[diesel(sql_type = BigInt)]
    version: i64,
    #[diesel(sql_type = Text)]
    tables: String,
    #[diesel(sql_type = Array<Text>)]
    groups: Vec<String>,
}

#[derive(Deserialize)]
struct StoredTable {
    id: i64,
    name: String,
    description: Option<String>,
    semantic_category: String,
    history: bool,
    columns: Vec<StoredColumn>,
    unique_together: Vec<Vec<String>>,
    /// Names of the groups that may read it and write it; rows of the trash are without them.
    #[serde(default)]
    read: Vec<String>,
    #[serde(default)]
    write: Vec<String>,
}

#[derive(Deserialize)]
struct StoredColumn {
    id: i64,
    name: String,
    description: Option<String>,
    label: Option<String>,
    unit: Option<String>,
    data_type: String,
    is_primary_key: bool,
    is_nullable: bool,
    is_unique: bool,
    default_value: Option<Value>,
    references_table: Option<String>,
}

/// The catalog as it stands; version and tables are read by one statement, so they fit together.
pub(super) async fn load_catalog(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
) -> Result<Catalog, LoadError> {
    let loaded: Option<Loaded> = diesel::sql_query(
        // One document in place of a join: a row per column would repeat its table's values.
        "SELECT o.catalog_version AS version, coalesce((SELECT json_agg(json_build_object( \
           'id', t.id, 'name', t.name, 'description', t.description, 'semantic_category', t.semantic_category, 'history', t.history, \
           'columns', coalesce((SELECT json_agg(json_build_object('id', c.id, 'name', c.name, 'description', c.description, \
              'label', c.label, 'unit', c.unit, 'data_type', c.data_type, 'is_primary_key', c.is_primary_key, 'is_nullable', c.is_nullable, \
              'is_unique', c.is_unique, 'default_value', c.default_value, 'references_table', c.references_table) \
              ORDER BY c.position, c.id) FROM labdata.catalog_column c WHERE c.table_id = t.id), '[]'::json), \
           'unique_together', coalesce((SELECT json_agg(to_json(u.columns) ORDER BY u.position) \
              FROM labdata.catalog_unique u WHERE u.table_id = t.id), '[]'::json), \
           'read', labdata.access_groups(t.id, 'read'), 'write', labdata.access_groups(t.id, 'write')) ORDER BY t.id) \
         FROM labdata.catalog_table t WHERE t.organization_id = o.id), '[]'::json)::text AS tables, \
         ARRAY(SELECT g.name FROM labdata.user_group g WHERE g.organization_id = o.id) AS groups \
         FROM labdata.organization o WHERE o.id = $1",
    )
    .bind::<SqlUuid, _>(organization.as_uuid())
    .get_result(connection)
    .await
    .optional()?;
    let Some(loaded) = loaded else {
        return Err(LoadError::Port(PortError::NotFound(Resource::Organization)));
    };
    let stored: Vec<StoredTable> = serde_json::from_str(&loaded.tables)
        .map_err(|error| corrupt(&format!("the catalog's JSON: {error}")))?;
    let tables = stored
        .into_iter()
        .map(table)
        .collect::<Result<Vec<Table>, LoadError>>()?;
    Ok(Catalog::new(CatalogVersion(loaded.version), tables).with_groups(loaded.groups))
}

/// As [`load_catalog`], for other areas.
pub(crate) async fn current(
    connection: &mut AsyncPgConnection,
    organization: OrganizationId,
) -> Result<Catalog, Fault> {
    let loaded = load_catalog(connection, organization).await;
    loaded.map_err(|error| match error {
        LoadError::Database(error) => error.into(),
        LoadError::Port(error) => error.into(),
    })
}

/// Why the catalog could not be read.
pub(super) enum LoadError {
    Database(diesel::result::Error),
    Port(PortError),
}

impl From<diesel::result::Error> for LoadError {
    fn from(error: diesel::result::Error) -> Self {
        Self::Database(error)
    }
}

fn corrupt(what: &str) -> LoadError {
    LoadError::Port(PortError::Corrupt(format!("labdata.catalog_table: {what}")))
}

/// A table of the organization, by the rows that define it.
pub(crate) fn stored_table(definition: Value) -> Result<Table, PortError> {
    let stored = serde_json::from_value(definition);
    let stored =
        stored.map_err(|error| PortError::Corrupt(format!("labdata.trash.content: {error}")))?;
    table(stored).map_err(|error| match error {
        LoadError::Port(error) => error,
        LoadError::Database(error) => PortError::Internal(error.to_string()),
    })
}

fn table(stored: StoredTable) -> Result<Table, LoadError> {
    let category = SemanticCategory::from_name(&stored.semantic_category)
        .ok_or_else(|| corrupt(&format!("semantic_category of table {}", stored.id)))?;
    Ok(Table {
        id: Some(stored.id),
        name: stored.name,
        description: stored.description,
        category,
        origin: Origin::Organization,
        columns: stored
            .columns
            .into_iter()
            .map(column)
            .collect::<Result<_, _>>()?,
        unique_together: stored.unique_together,
        history: stored.history,
        access: TableAccess {
            read: stored.read,
            write: stored.write,
        },
    })
}

fn column(stored: StoredColumn) -> Result<Column, LoadError> {
    let data_type = DataType::from_name(&stored.data_type)
        .ok_or_else(|| corrupt(&format!("data_type of column {}", stored.id)))?;
    Ok(Column {
        id: Some(stored.id),
        name: stored.name,
        description: stored.description,
        label: stored.label,
        unit: stored.unit,
        data_type,
        is_primary_key: stored.is_primary_key,
        is_nullable: stored.is_nullable,
        is_unique: stored.is_unique,
        default: stored.default_value,
        references: stored.references_table,
    })
}
