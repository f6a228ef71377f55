//! The tool `write_data`.

use async_trait::async_trait;
use labdata_application::{
    Error,
    agent::{tools::ToolContext, write_in_run::write_in_run},
};
use labdata_domain::{
    agent::write_effects,
    data::write::{SeriesWrite, TableWrite, WriteRequest},
};
use labdata_request_body::{
    data_write,
    fields::or,
    output,
    readers::{Reader as _, boolean, list, shape},
    shape,
};
use serde_json::json;

use super::own::OwnTool;
use crate::data::write::DataWriteView;

/// Number of keys of rows that are given per table.
const GIVEN_KEYS: usize = 50;

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

output! {
    /// Result of a write.
    pub(super) struct WrittenView {
        #[flatten]
        written: DataWriteView,
        /// True if nothing was written.
        dry_run: bool,
        /// Effects that reverting the execution does not undo, one sentence each.
        effects: Vec<String>,
    }
}

/// Writes rows and series.
pub(super) struct WriteDataTool;

#[async_trait]
impl OwnTool for WriteDataTool {
    type Input = WriteDataInput;
    type Output = WrittenView;
    const NAME: &'static str = "write_data";
    const DESCRIPTION: &'static str = "Inserts, upserts, updates or deletes rows and writes series, all of it \
        in one transaction or nothing. Call it with dry_run set to true first: the response lists problems \
        and effects, and nothing is written.";
    const NEEDS_WRITE: bool = true;

    async fn run(
        &self,
        context: &ToolContext<'_>,
        input: WriteDataInput,
    ) -> Result<WrittenView, Error> {
        let ToolContext {
            services,
            actor,
            writes,
            ..
        } = *context;
        let dry_run = input.dry_run;
        let request = WriteRequest {
            tables: input.tables,
            series: input.series,
            dry_run,
            ..WriteRequest::default()
        };
        let mut outcome = write_in_run(services, actor, writes, request).await?;
        for table in &mut outcome.tables {
            table.ids.truncate(GIVEN_KEYS);
        }
        Ok(WrittenView {
            effects: write_effects(&outcome, dry_run),
            written: outcome.into(),
            dry_run,
        })
    }
}
