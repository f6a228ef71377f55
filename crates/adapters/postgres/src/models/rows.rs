//! Rows of datasets.

use std::borrow::Cow;

use diesel::prelude::*;
use labdata_domain::{
    catalog::TableIdentity,
    files::ObjectKey,
    ids::{DatasetId, FileId, OrganizationId, UserId},
    models::{ColumnProfile, Dataset, DatasetColumn, DatasetSource},
    scalar::DataType,
};
use labdata_ports::PortError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{database::errors::corrupt, schema::dataset};

/// A dataset as it is read.
#[derive(Queryable, Selectable)]
#[diesel(table_name = dataset)]
pub(crate) struct DatasetRow {
    id: Uuid,
    name: String,
    description: Option<String>,
    column_definitions: Value,
    row_count: i64,
    source_query: Option<String>,
    source_file_id: Option<Uuid>,
    object_key: Uuid,
    size_bytes: i64,
    created_by: Uuid,
    created_at: OffsetDateTime,
    source_label: Option<String>,
    tables: Vec<String>,
}

/// A dataset as it is stored.
#[derive(Insertable)]
#[diesel(table_name = dataset)]
pub(super) struct NewDatasetRow<'d> {
    id: Uuid,
    organization_id: Uuid,
    name: &'d str,
    description: Option<&'d str>,
    column_definitions: Value,
    row_count: i64,
    source_query: Option<Cow<'d, str>>,
    source_file_id: Option<Uuid>,
    object_key: Uuid,
    size_bytes: i64,
    created_by: Uuid,
    created_at: OffsetDateTime,
    source_label: Option<&'d str>,
    tables: Vec<String>,
}

/// Element of the column `column_definitions`.
#[derive(Serialize, Deserialize)]
struct ColumnJson {
    name: String,
    data_type: DataType,
    nulls: u64,
    distinct: Option<u64>,
}

impl<'d> NewDatasetRow<'d> {
    pub(super) fn of(
        organization: OrganizationId,
        dataset: &'d Dataset,
    ) -> Result<Self, PortError> {
        let columns: Vec<ColumnJson> = dataset.columns.iter().map(ColumnJson::from).collect();
        let internal = |error: &dyn std::fmt::Display| PortError::Internal(error.to_string());
        let (source_query, source_file_id) = match &dataset.source {
            DatasetSource::Query(text) => (Some(text.as_str().into()), None),
            DatasetSource::File(id) => (None, Some(id.as_uuid())),
            // In words, for servers that know queries and files only.
            DatasetSource::Annotations(label) => {
                (Some(format!("-- vetted masks of \"{label}\"").into()), None)
            }
        };
        let source_label = match &dataset.source {
            DatasetSource::Annotations(label) => Some(label.as_str()),
            DatasetSource::Query(_) | DatasetSource::File(_) => None,
        };
        Ok(Self {
            id: dataset.id.as_uuid(),
            organization_id: organization.as_uuid(),
            name: &dataset.name,
            description: dataset.description.as_deref(),
            column_definitions: serde_json::to_value(columns).map_err(|error| internal(&error))?,
            row_count: i64::try_from(dataset.row_count).map_err(|error| internal(&error))?,
            source_query,
            source_file_id,
            object_key: dataset.object.as_uuid(),
            size_bytes: i64::try_from(dataset.size).map_err(|error| internal(&error))?,
            created_by: dataset.created_by.as_uuid(),
            created_at: dataset.created_at,
            source_label,
            tables: dataset.tables.iter().map(ToString::to_string).collect(),
        })
    }
}

impl TryFrom<DatasetRow> for Dataset {
    type Error = PortError;

    fn try_from(row: DatasetRow) -> Result<Self, PortError> {
        let unreadable = |column| corrupt("dataset", column, row.id);
        let columns: Vec<ColumnJson> = serde_json::from_value(row.column_definitions)
            .map_err(|_| unreadable("column_definitions"))?;
        let source = match (row.source_query, row.source_file_id, row.source_label) {
            (Some(_), None, Some(label)) => DatasetSource::Annotations(label),
            (Some(text), None, None) => DatasetSource::Query(text),
            (None, Some(id), None) => DatasetSource::File(FileId::new(id)),
            _ => return Err(unreadable("source_query")),
        };
        Ok(Self {
            id: DatasetId::new(row.id),
            name: row.name,
            description: row.description,
            columns: columns.into_iter().map(DatasetColumn::from).collect(),
            row_count: u64::try_from(row.row_count).map_err(|_| unreadable("row_count"))?,
            source,
            tables: row
                .tables
                .iter()
                .map(|table| TableIdentity::parse(table))
                .collect(),
            object: ObjectKey::new(row.object_key),
            size: u64::try_from(row.size_bytes).map_err(|_| unreadable("size_bytes"))?,
            created_by: UserId::new(row.created_by),
            created_at: row.created_at,
        })
    }
}

impl From<&DatasetColumn> for ColumnJson {
    fn from(column: &DatasetColumn) -> Self {
        Self {
            name: column.name.clone(),
            data_type: column.data_type,
            nulls: column.profile.nulls,
            distinct: column.profile.distinct,
        }
    }
}

impl From<ColumnJson> for DatasetColumn {
    fn from(column: ColumnJson) -> Self {
        Self {
            name: column.name,
            data_type: column.data_type,
            profile: ColumnProfile {
                nulls: column.nulls,
                distinct: column.distinct,
            },
        }
    }
}
