//! The answer of a data write.

use std::collections::BTreeMap;

use labdata_domain::data::write::{SeriesOutcome, TableOutcome, WriteOutcome};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// Result of a data write.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DataWriteResult)]
pub struct DataWriteView {
    /// The execution that it is recorded under; null on a dry run.
    job_execution_id: Option<String>,
    /// A result per table write, in request order.
    tables: Vec<TableWriteView>,
    /// A result per series, in request order.
    series: Vec<SeriesWriteView>,
    /// The primary key of every labelled row.
    refs: BTreeMap<String, String>,
}

/// Result of one table write.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TableWriteResult)]
pub struct TableWriteView {
    /// The table.
    table: String,
    /// Rows created.
    created: u64,
    /// Rows matched (overwrite) or changed (fill missing).
    updated: u64,
    /// Rows deleted that were asked for.
    deleted: u64,
    /// The primary key of each input row, in input order.
    ids: Vec<String>,
    /// Rows, or points of raw tables, that went with the deleted ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    cascade_deleted: Option<BTreeMap<String, u64>>,
    /// The written rows, where `return_rows` is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>, nullable = false)]
    rows: Option<Vec<Box<RawValue>>>,
}

/// Result of one series write.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SeriesWriteResult)]
pub struct SeriesWriteView {
    /// The raw table.
    table: String,
    /// The parent row's primary key.
    parent_id: String,
    /// Points written.
    points_written: u64,
    /// Points of the previous series, removed.
    points_replaced: u64,
}

impl From<WriteOutcome> for DataWriteView {
    fn from(outcome: WriteOutcome) -> Self {
        Self {
            job_execution_id: outcome.execution.map(|id| id.to_string()),
            tables: outcome
                .tables
                .into_iter()
                .map(TableWriteView::from)
                .collect(),
            series: outcome
                .series
                .into_iter()
                .map(SeriesWriteView::from)
                .collect(),
            refs: outcome.refs,
        }
    }
}

impl From<TableOutcome> for TableWriteView {
    fn from(outcome: TableOutcome) -> Self {
        let rows = outcome.rows.map(|rows| {
            rows.into_iter()
                .filter_map(|row| RawValue::from_string(row.into_string()).ok())
                .collect()
        });
        Self {
            table: outcome.table,
            created: outcome.created,
            updated: outcome.updated,
            deleted: outcome.deleted,
            ids: outcome.ids.iter().map(ToString::to_string).collect(),
            cascade_deleted: outcome.cascade_deleted,
            rows,
        }
    }
}

impl From<SeriesOutcome> for SeriesWriteView {
    fn from(outcome: SeriesOutcome) -> Self {
        Self {
            table: outcome.table,
            parent_id: outcome.parent.to_string(),
            points_written: outcome.points_written,
            points_replaced: outcome.points_replaced,
        }
    }
}
