//! The tool `read_series`.

use std::collections::BTreeMap;

use labdata_application::{
    Error,
    data::read_series::{ReadSeries, read_series},
};
use labdata_domain::scalar::Values;
use labdata_request_body::{
    fields::{optional, or, required},
    output,
    readers::{datetime, text, unsigned},
    shape,
};
use serde_json::Value;
use time::OffsetDateTime;

use super::ToolFacts;
use crate::{Call, JsonBody, Read};

/// Number of points that are returned unless the model asks for another.
const DEFAULT_POINTS: u32 = 200;

/// Maximum number of points that are returned.
const MAX_POINTS: u32 = 1_000;

shape! {
    /// Arguments of `read_series`.
    pub(crate) struct ReadSeriesInput {
        /// The raw table.
        table: String = required(text(..)),
        /// Primary key of the row that the series belongs to.
        parent: String = required(text(..)),
        /// The reference to that row, where the table has several.
        parent_column: Option<String> = optional(text(..)),
        /// Maximum number of points to return; of a longer series every n-th is returned.
        limit: u32 = or(DEFAULT_POINTS, unsigned(1..=MAX_POINTS)),
        /// The series as it stood at this moment; as it is unless given.
        as_of: Option<OffsetDateTime> = optional(datetime()),
    }
}

output! {
    /// Points of one series.
    pub(crate) struct SeriesView {
        /// Primary key of the row that the series belongs to.
        parent_id: String,
        /// Number of points of the whole series.
        points: usize,
        /// Every n-th point is returned.
        every: usize,
        /// Values by column.
        columns: BTreeMap<String, Vec<Value>>,
    }
}

/// Facts of the tool.
pub(crate) const FACTS: ToolFacts = ToolFacts::of(
    "Reads one series of a raw table, column by column. A long series is \
        thinned out evenly; compute over all points with query_data.",
);

/// Series of points.
pub(crate) async fn run(call: Call<Read, JsonBody<ReadSeriesInput>>) -> Result<SeriesView, Error> {
    let query = ReadSeries {
        table: call.body.table,
        parent_column: call.body.parent_column,
        parent: call.body.parent,
        as_of: call.body.as_of,
    };
    let series = read_series(&call.services, &call.actor, query).await?;
    let points = series.points.points;
    let limit = usize::try_from(call.body.limit).unwrap_or(usize::MAX);
    let step = points.div_ceil(limit).max(1);
    let columns = series.points.columns.iter();
    Ok(SeriesView {
        parent_id: series.parent.to_string(),
        points,
        every: step,
        columns: columns
            .map(|(name, values)| (name.clone(), thinned(values, points, step)))
            .collect(),
    })
}

fn thinned(values: &Values, points: usize, step: usize) -> Vec<Value> {
    let indexes = (0..points).step_by(step);
    let thinned = indexes.map(|index| {
        let value = values.get(index);
        value.map_or(Value::Null, |value| value.to_json())
    });
    thinned.collect()
}
