//! `POST /api/v1/data/write`

use std::collections::BTreeMap;

use bytes::Bytes;
use labdata_application::{
    Error,
    data::write_data::{WriteData, write_data},
};
use labdata_domain::{
    data::write::{SeriesOutcome, TableOutcome, WriteOutcome},
    ids::ExecutionId,
};
use labdata_limits::Slot;
use labdata_request_body::{
    Definitions, FieldPath, Property, Schema, data_write::DataWriteBody, json, output,
};
use serde_json::Value;

use super::RenderedObject;
use crate::{
    About, Body, BodyDescription, BodyKind, Call, Describe, DescribeBody, JsonBody, Method,
    Operation, Reply, Respond, Tag, Write, errors::WriteRefusal,
};

/// The body of a data write: read straight into columns if it fits, else by the reader that
/// reports every problem.
#[derive(Debug)]
pub enum StreamedBody {}

impl Body for StreamedBody {
    type Value = DataWriteBody;
    const KIND: BodyKind = BodyKind::Json;

    fn read(received: &Bytes, at: &FieldPath<'_>) -> Option<DataWriteBody> {
        json::stream(received).or_else(|| json::read(received, at))
    }

    fn document(received: &Bytes) -> Value {
        json::document(received)
    }

    fn fields(definitions: &mut Definitions) -> Vec<Property> {
        JsonBody::<DataWriteBody>::fields(definitions)
    }
}

impl DescribeBody for StreamedBody {
    fn describe(definitions: &mut Definitions) -> Option<BodyDescription> {
        JsonBody::<DataWriteBody>::describe(definitions)
    }
}

output! {
    /// Result of a data write.
    #[derive(Debug)]
    pub struct DataWriteView as "DataWriteResult" from outcome: WriteOutcome {
        /// The execution that it is recorded under; null on a dry run.
        job_execution_id: Option<ExecutionId> = outcome.execution,
        /// A result per table write, in request order.
        tables: Vec<TableWriteView> = outcome.tables.into_iter().map(Into::into).collect(),
        /// A result per series, in request order.
        series: Vec<SeriesWriteView> = outcome.series.into_iter().map(Into::into).collect(),
        /// The primary key of every labelled row.
        refs: BTreeMap<String, String> = outcome.refs,
    }
}

output! {
    /// Result of one table write.
    #[derive(Debug)]
    pub struct TableWriteView as "TableWriteResult" from outcome: TableOutcome {
        /// The table.
        table: String = outcome.table,
        /// Rows created.
        created: u64 = outcome.created,
        /// Rows matched (overwrite) or changed (fill missing).
        updated: u64 = outcome.updated,
        /// Rows deleted that were asked for.
        deleted: u64 = outcome.deleted,
        /// The primary key of each input row, in input order.
        ids: Vec<String> = outcome.ids.iter().map(ToString::to_string).collect(),
        /// Rows, or points of raw tables, that went with the deleted ones.
        #[optional]
        cascade_deleted: Option<BTreeMap<String, u64>> = outcome.cascade_deleted,
        /// The written rows, where `return_rows` is set.
        #[optional]
        rows: Option<Vec<RenderedObject>> =
            outcome.rows.map(|rows| rows.into_iter().filter_map(RenderedObject::of).collect()),
    }
}

output! {
    /// Result of one series write.
    #[derive(Debug)]
    pub struct SeriesWriteView as "SeriesWriteResult" from outcome: SeriesOutcome {
        /// The raw table.
        table: String = outcome.table,
        /// The parent row's primary key.
        parent_id: String = outcome.parent.to_string(),
        /// Points written.
        points_written: u64 = outcome.points_written,
        /// Points of the previous series, removed.
        points_replaced: u64 = outcome.points_replaced,
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "write_data",
        method: Method::Post,
        path: "/api/v1/data/write",
        tag: Tag::Data,
        summary: "Write rows and series",
        description: "Inserts, upserts, updates or deletes rows across tables and writes raw series in one \
            transaction, recorded under one execution that can be reverted. All problems are reported \
            together, and then nothing is written.",
        returns: "What was written",
        refusals: &[(
            403,
            "The API key lacks the write scope, or the caller may not write a table: one that the request \
             names, or one whose rows refer to a row that it deletes",
        )],
    }
    .runs(run)
    .creating()
    .refusing::<WriteRefusal>(400, "What does not hold, with paths; nothing was written")
}

/// The response to a data write.
struct WriteReply {
    view: DataWriteView,
    is_dry_run: bool,
    /// Present if rows are returned.
    slot: Option<Slot>,
}

impl Describe for WriteReply {
    fn content(definitions: &mut Definitions) -> Vec<(&'static str, Schema)> {
        DataWriteView::content(definitions)
    }
}

impl Respond for WriteReply {
    fn reply(self) -> Result<Reply, Error> {
        Ok(Reply {
            is_dry_run: self.is_dry_run,
            slot: self.slot,
            ..self.view.reply()?
        })
    }
}

async fn run(call: Call<Write, StreamedBody>) -> Result<WriteReply, Error> {
    let mut body = call.body;
    let command = WriteData {
        job_execution_id: body.job_execution_id.take(),
        job_name: body.job_name.take(),
        max_rows: None,
        request: body.into(),
    };
    let is_dry_run = command.request.dry_run;
    let outcome = write_data(&call.services, &call.actor, command).await?;
    Ok(WriteReply {
        view: outcome.value.into(),
        is_dry_run,
        slot: outcome.slots,
    })
}
