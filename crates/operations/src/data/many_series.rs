//! `POST /api/v1/tools/series`

use labdata_request_body::{
    ProblemKind,
    fields::{optional, or, required},
    readers::{any, boolean, datetime, list, object, text},
    shape,
};
use serde_json::{Map, Value, json};
use time::OffsetDateTime;

use super::{read::MAX_COLUMNS, series::SeriesView};
use crate::{About, JsonBody, JsonOrFile, Method, Operation, Read, Tag};

shape! {
    /// The series to read.
    #[derive(Clone, Debug)]
    pub struct ManySeriesBody {
        /// A raw table's name.
        pub table: String = required(text(..)),
        /// Primary keys of the parents, whose series come in this order; each once.
        pub parents: Option<Vec<Value>> = optional(list(any())),
        /// Conditions on the parents, as in `tools/read`, instead of `parents`. Their series come by
        /// ascending key; those of all rows if neither is given.
        pub filters: Option<Map<String, Value>> = optional(object()),
        /// Columns of the series, in this order; all unless given.
        pub columns: Option<Vec<String>> = optional(list(text(..)).of(1..=MAX_COLUMNS)),
        /// The reference by which the parents own the points; needed where the table has several.
        pub parent_column: Option<String> = optional(text(..)),
        /// Parents and series as they stood then, as in `tools/read`.
        pub as_of: Option<OffsetDateTime> = optional(datetime()),
        /// In CSV, puts an apostrophe before texts that a spreadsheet would take for formulas: those that begin
        /// with `=`, `+`, `-`, `@`, a tab or a carriage return. Numbers stay as they are.
        pub neutralize_formulas: bool = or(false, boolean()),
    }
    example json!({
        "table": "growth_curve",
        "filters": {"name__contains": "A"},
        "columns": ["time", "od600"],
    });
    rules |at| {
        if let (Some(Some(_)), Some(Some(_))) = (parents, filters) {
            at.field("filters").report(ProblemKind::value_error("not together with parents"));
        }
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "read_many_series",
        method: Method::Post,
        path: "/api/v1/tools/series",
        tag: Tag::Tools,
        summary: "Read many series",
        description: "All points of many parents, column by column, in the order in which they were written. A \
            parent without points has empty lists. As JSON at most 2,000,000 values and 32 MiB: beyond, \
            400 says so.\n\n\
            `Accept` chooses the form: JSON unless it names CSV, an Arrow stream or Parquet. Those are one \
            table of any size, with the parent's key as first column, sent while it is read. It ends \
            early, without its last chunk, if the client lets it wait (for 30 s unless set otherwise).",
        returns: "The series",
        refusals: &[
            (406, "The series have no form that `Accept` allows"),
            (503, "Earlier results of the organization are still being sent"),
        ],
    }
    .served_by_hand::<Read, JsonBody<ManySeriesBody>, (), (), JsonOrFile<Vec<SeriesView>>>()
}
