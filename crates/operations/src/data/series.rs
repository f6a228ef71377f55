//! `GET /api/v1/tools/series/{table}`

use labdata_domain::catalog::Name;
use labdata_request_body::{
    Reader as _,
    fields::{optional, required},
    output,
    readers::{datetime, text},
    shape,
};
use serde_json::Value;
use time::OffsetDateTime;

use super::RenderedObject;
use crate::{About, JsonOrFile, Method, NoBody, Operation, Read, Tag, tools::read_series};

shape! {
    /// The path of a raw table.
    #[derive(Debug)]
    pub struct SeriesPath {
        /// A raw table's name
        pub table: String = required(text(..).with("pattern", Name::PATTERN).example("growth_curve")),
    }
}

shape! {
    /// The series to read.
    #[derive(Clone, Debug)]
    pub struct SeriesQuery {
        /// The primary key of the row that owns the points.
        pub parent: String = required(text(..)),
        /// The reference by which it owns them; needed where the table has several.
        pub parent_column: Option<String> = optional(text(..)),
        /// The series as it stood then, as in `tools/read`.
        pub as_of: Option<OffsetDateTime> = optional(datetime()),
    }
}

output! {
    /// A series, column by column.
    #[derive(Debug)]
    pub struct SeriesView as "Series" {
        /// The primary key of the row that owns the points.
        parent: Value,
        /// The values of each column, as a write accepts them; the parent's own is left out.
        columns: RenderedObject,
        /// Number of points.
        points: usize,
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "read_series",
        method: Method::Get,
        path: "/api/v1/tools/series/{table}",
        tag: Tag::Tools,
        summary: "Read a series",
        description: "All points of one parent, column by column, in the order in which they were written; a \
            row without points has a series of none. At most 2,000,000 values and 32 MiB: beyond, 400 \
            says so.\n\n\
            `Accept` chooses the form: JSON unless it names CSV, an Arrow stream or Parquet. Their columns \
            are int64, float64, bool, timestamp\\[µs, UTC\\], date32, and utf8 for all else, JSON \
            included.",
        returns: "The series",
        refusals: &[(406, "The series has no form that `Accept` allows")],
    }
    .served_by_hand::<Read, NoBody, SeriesQuery, SeriesPath, JsonOrFile<SeriesView>>()
    .tool_running(read_series::FACTS, read_series::run)
}
