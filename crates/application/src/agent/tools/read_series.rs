//! The tool `read_series`.

use async_trait::async_trait;
use labdata_domain::scalar::{Scalar, Values};
use labdata_request_body::{
    fields::{optional, or, required},
    readers::{text, unsigned},
    shape,
};
use serde_json::{Map, Value, json};

use super::{ToolContext, TypedTool};
use crate::{
    Error,
    data::read_series::{ReadSeries, read_series},
};

/// Number of points that are returned unless the model asks for another.
const DEFAULT_POINTS: u32 = 200;

/// Maximum number of points that are returned.
const MAX_POINTS: u32 = 1_000;

shape! {
    /// Arguments of `read_series`.
    pub(super) struct ReadSeriesInput {
        /// The raw table.
        table: String = required(text(..)),
        /// Primary key of the row that the series belongs to.
        parent: String = required(text(..)),
        /// The reference to that row, where the table has several.
        parent_column: Option<String> = optional(text(..)),
        /// Maximum number of points to return; of a longer series every n-th is returned.
        limit: u32 = or(DEFAULT_POINTS, unsigned(1..=MAX_POINTS)),
    }
}

/// Series of points.
pub(super) struct ReadSeriesTool;

#[async_trait]
impl TypedTool for ReadSeriesTool {
    type Input = ReadSeriesInput;
    const NAME: &'static str = "read_series";
    const DESCRIPTION: &'static str = "Reads one series of a raw table, column by column. A long series is \
        thinned out evenly; compute over all points with query_data.";
    const NEEDS_WRITE: bool = false;

    async fn run(
        &self,
        context: &ToolContext<'_>,
        input: ReadSeriesInput,
    ) -> Result<String, Error> {
        let query = ReadSeries {
            table: input.table,
            parent_column: input.parent_column,
            parent: input.parent,
        };
        let series = read_series(context.ports, context.actor, query).await?;
        let points = series.points.points;
        let limit = usize::try_from(input.limit).unwrap_or(usize::MAX);
        let step = points.div_ceil(limit).max(1);
        let columns = series.points.columns.iter();
        let columns: Map<String, Value> = columns
            .map(|(name, values)| (name.clone(), thinned(values, points, step)))
            .collect();
        let json = json!({
            "parent": Scalar::from(series.parent.clone()).to_json(),
            "points": points,
            "every": step,
            "columns": columns,
        });
        Ok(json.to_string())
    }
}

fn thinned(values: &Values, points: usize, step: usize) -> Value {
    let indexes = (0..points).step_by(step);
    indexes
        .map(|index| {
            values
                .get(index)
                .map_or(Value::Null, |value| value.to_json())
        })
        .collect()
}
