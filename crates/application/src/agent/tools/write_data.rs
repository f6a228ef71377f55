//! The tool `write_data`.

use async_trait::async_trait;
use labdata_domain::{
    agent::write_effects,
    data::write::{SeriesWrite, TableWrite, WriteOutcome, WriteRequest},
};
use labdata_request_body::{
    data_write,
    fields::or,
    readers::{Reader as _, boolean, list, shape},
    shape,
};
use serde_json::{Value, json};

use super::{ToolContext, TypedTool, effects::with_effects};
use crate::{
    Error,
    data::write_data::{WriteData, write_data},
};

shape! {
    /// Arguments of `write_data`.
    pub(super) struct WriteDataInput {
        /// Table writes, applied in order.
        tables: Vec<TableWrite> = or(json!([]), list(shape::<data_write::TableWrite>().map(TableWrite::from))),
        /// Series, applied after the tables.
        series: Vec<SeriesWrite> = or(json!([]), list(shape::<data_write::SeriesWrite>().map(SeriesWrite::from))),
        /// Check and write everything, then roll back.
        dry_run: bool = or(false, boolean()),
    }
}

/// Writes rows and series.
pub(super) struct WriteDataTool;

#[async_trait]
impl TypedTool for WriteDataTool {
    type Input = WriteDataInput;
    const NAME: &'static str = "write_data";
    const DESCRIPTION: &'static str = "Inserts, upserts, updates or deletes rows and writes series, all of it \
        in one transaction or nothing. Call it with dry_run set to true first: the answer shows problems \
        and effects, and nothing is written.";
    const NEEDS_WRITE: bool = true;
    const IS_DESTRUCTIVE: bool = true;

    async fn run(&self, context: &ToolContext<'_>, input: WriteDataInput) -> Result<String, Error> {
        let ToolContext {
            ports,
            actor,
            writes,
        } = *context;
        let request = WriteRequest {
            tables: input.tables,
            series: input.series,
            dry_run: true,
            ..WriteRequest::default()
        };
        // A dry run under no execution: a write with problems opens none.
        let tried = WriteData {
            request: request.clone(),
            ..WriteData::default()
        };
        let outcome = write_data(ports, actor, tried).await?;
        if input.dry_run {
            return Ok(outcome_json(&outcome, true));
        }
        let execution = writes.execution(ports, actor).await?;
        let command = WriteData {
            request: WriteRequest {
                dry_run: false,
                ..request
            },
            job_execution_id: Some(execution.to_string()),
            job_name: None,
            max_rows: None,
        };
        let outcome = write_data(ports, actor, command).await?;
        Ok(outcome_json(&outcome, false))
    }
}

/// Number of keys of rows that are shown per table.
const SHOWN_KEYS: usize = 50;

fn outcome_json(outcome: &WriteOutcome, is_dry_run: bool) -> String {
    let tables = outcome.tables.iter().map(|table| {
        let ids = table.ids.iter().take(SHOWN_KEYS).map(ToString::to_string);
        json!({
            "table": table.table,
            "created": table.created,
            "updated": table.updated,
            "deleted": table.deleted,
            "cascade_deleted": table.cascade_deleted,
            "ids": ids.collect::<Vec<_>>(),
        })
    });
    let series = outcome.series.iter().map(|series| {
        json!({
            "table": series.table,
            "parent": series.parent.to_string(),
            "points_written": series.points_written,
            "points_replaced": series.points_replaced,
        })
    });
    let json = json!({
        "dry_run": is_dry_run,
        "job_execution_id": outcome.execution.map(|id| id.to_string()),
        "tables": tables.collect::<Vec<Value>>(),
        "series": series.collect::<Vec<Value>>(),
    });
    with_effects(json, write_effects(outcome, is_dry_run))
}
