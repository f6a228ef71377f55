//! `POST /api/v1/tools/query`

use labdata_request_body::{
    Reader as _,
    fields::{or, required},
    output,
    readers::{any, list, text},
    shape,
};
use serde_json::{Value, json};

use crate::{About, JsonBody, JsonOrFile, Method, Operation, Read, Tag};

shape! {
    /// The query to run.
    #[derive(Clone, Debug)]
    pub struct QueryBody {
        /// One SELECT, in PostgreSQL's SQL.
        pub query: String = required(
            text(1..).example("select name, volume from sample where volume > %s order by name"),
        ),
        /// The values of its placeholders: `%s` in turn, or `$1`, `$2`, ….
        pub params: Vec<Value> = or(json!([]), list(any())),
    }
    example json!({
        "query": "select name, volume from sample where volume > %s order by name",
        "params": [100],
    });
}

output! {
    /// Result of a query.
    #[derive(Debug)]
    pub struct QueryView as "QueryResult" {
        /// The names of the columns, in order.
        columns: Vec<String>,
        /// The rows, each with one value per column.
        data: Vec<Vec<Value>>,
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "query_data",
        method: Method::Post,
        path: "/api/v1/tools/query",
        tag: Tag::Tools,
        summary: "Query with SQL",
        description: "One SELECT over the organization's tables: curated, core, and raw ones as one row per \
            point; and over `table`, `job`, `job_execution`, `file`, `instrument`, `ml_model`, `dataset` \
            and `organizationmember`. A reference is called by its name and `_id`. Placeholders take the \
            type of their place. At most 15 s, 10,000 rows and 16 MiB: beyond, 400 says so. Nothing is \
            ever changed.\n\n\
            `Accept` chooses the form: JSON unless it names CSV, an Arrow stream or Parquet. Their columns \
            are int64, float64, bool, timestamp\\[µs, UTC\\], date32, and utf8 for all else, JSON \
            included; of two columns of one name, the second ends in `_2`.",
        returns: "The result",
        refusals: &[
            (400, "The query is wrong, or takes too much: the detail says what"),
            (406, "The result has no form that `Accept` allows"),
            (429, "Too many queries are running"),
            (503, "Earlier results of the organization are still being sent"),
        ],
    }
    .served_by_hand::<Read, JsonBody<QueryBody>, (), (), JsonOrFile<QueryView>>()
}
