//! `POST /api/v1/tools/read`

use labdata_application::data::read_rows::TargetType;
use labdata_domain::{
    data::read::{MAX_ORDER_TERMS, Position, ReadMode},
    page::{DEFAULT_LIMIT, MAX_LIMIT},
};
use labdata_request_body::{
    fields::{optional, or, required},
    readers::{choice, cursor_of, datetime, list, object, text, unsigned},
    shape,
};
use serde_json::{Map, Value, json};
use time::OffsetDateTime;

use super::RenderedObject;
use crate::{About, JsonBody, Listing, Method, Operation, Read, Tag};

/// Maximum number of columns of a read.
pub(super) const MAX_COLUMNS: usize = 512;

shape! {
    /// The rows to read.
    #[derive(Clone, Debug)]
    pub struct ReadRowsBody {
        /// The table's name.
        pub target_name: String = required(text(..)),
        /// `table` for one of the organization's, `core-table` for a core or platform table.
        pub target_type: TargetType = required(choice(TargetType::ALL)),
        /// Conditions by column: a value for equality, or with a test at the end of the key
        /// (`__in`, `__gt`, `__gte`, `__lt`, `__lte`, `__isnull`, `__contains`); a key may follow
        /// references (`sample__name`).
        pub filters: Map<String, Value> = or(json!({}), object()),
        /// `single` expects exactly one row.
        pub mode: ReadMode = or("multiple", choice(ReadMode::ALL)),
        /// Columns of the rows, in this order; all unless given.
        pub columns: Option<Vec<String>> = optional(list(text(..)).of(1..=MAX_COLUMNS)),
        /// Columns that order the rows, each after `-` where the greatest value comes first. Null is
        /// greater than every value. Rows that are equal come as without an order.
        pub order_by: Vec<String> = or(json!([]), list(text(..)).of(0..=MAX_ORDER_TERMS)),
        /// The most rows.
        pub limit: u32 = or(DEFAULT_LIMIT, unsigned(1..=MAX_LIMIT)),
        /// Start of the page, from the previous page's `Link` header.
        pub cursor: Option<Position> = optional(cursor_of(Position::decode)),
        /// The rows as they stood then, with the columns that the table has now. Filters, order and pages are of the
        /// rows as they stood, referenced rows included.
        pub as_of: Option<OffsetDateTime> = optional(datetime()),
    }
    example json!({
        "target_name": "sample",
        "target_type": "table",
        "filters": {"name__contains": "A", "volume__gte": 100, "strain__name__in": ["BY4741", "W303"]},
        "columns": ["id", "name", "volume"],
        "order_by": ["-volume", "name"],
        "limit": 100,
    });
}

shape! {
    /// The start of the next page, as its `Link` carries it; the same body is sent again.
    #[derive(Debug)]
    pub struct ReadRowsQuery {
        /// Start of the page; the body's `cursor` wins.
        pub cursor: Option<Position> = optional(cursor_of(Position::decode)),
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "read_rows",
        method: Method::Post,
        path: "/api/v1/tools/read",
        tag: Tag::Tools,
        summary: "Read rows",
        description: "Always an array, of one row in single mode. Unless `order_by` is given, rows come by \
            descending primary key (newest first for generated ids), points of raw tables series by series \
            in order. The next page is in the `Link` header: the same body to that URL. A page ends before \
            its limit with the row that brings it to 8 MiB.\n\n\
            With `as_of`, the rows as they stood at that moment, by the times of the writes that the server \
            recorded. A moment in the future is refused, and with `no_history` a table that is defined with \
            `\"history\": false`, a table of the platform itself, and a moment before the table's history \
            begins: when it was defined, or later if changes were deleted since. The execution that wrote the \
            points of a raw table is its column `created_by_execution_id`, read where `columns` names it.",
        returns: "The rows",
        refusals: &[(503, "Earlier pages of the organization are still being sent")],
    }
    .served_by_hand::<Read, JsonBody<ReadRowsBody>, ReadRowsQuery, (), Listing<RenderedObject>>()
}
