//! `POST /api/v1/tools/query`

use labdata_application::{
    Error,
    data::query_data::{QueryData, query_data},
    slots::Held,
};
use labdata_domain::data::query::MAX_LENGTH;
use labdata_request_body::{
    Reader as _,
    fields::{or, required},
    output,
    readers::{any, boolean, list, text, unsigned},
    shape,
};
use serde_json::{Value, json, value::RawValue};

use crate::{About, Call, JsonBody, JsonOrFile, Method, Operation, Read, Tag, tools::ToolFacts};

/// Number of rows that a model gets unless it asks for another.
const DEFAULT_ROWS: u32 = 200;

/// Maximum number of rows that a model gets.
const MAX_ROWS: u32 = 1_000;

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
        /// In CSV, puts an apostrophe before texts that a spreadsheet would take for formulas: those that begin
        /// with `=`, `+`, `-`, `@`, a tab or a carriage return. Numbers stay as they are.
        pub neutralize_formulas: bool = or(false, boolean()),
    }
    example json!({
        "query": "select name, volume from sample where volume > %s order by name",
        "params": [100],
    });
    // The body, and `params`: an integer that became a float would equal others, too.
    json_values_at 2;
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

shape! {
    /// The query of a model.
    struct ModelQuery {
        /// One SELECT statement in the SQL of PostgreSQL.
        query: String = required(text(1..=MAX_LENGTH)),
        /// Values of the placeholders $1, $2, … in the query.
        params: Vec<Value> = or(json!([]), list(any())),
        /// Maximum number of rows to return.
        limit: u32 = or(DEFAULT_ROWS, unsigned(1..=MAX_ROWS)),
    }
}

output! {
    /// Rows of a query, for a model.
    struct RowsView {
        /// The names of the columns, in order.
        columns: Vec<String>,
        /// Number of rows of the whole result.
        row_count: usize,
        /// Number of rows of `data`.
        rows_shown: usize,
        /// The first rows.
        data: Vec<Box<RawValue>>,
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
            `Accept` chooses the form: JSON unless it names CSV, an Arrow stream or Parquet, which are sent \
            while they are read, up to 120 s, 10,000,000 rows and 2 GiB. Their columns \
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
    .tool_running(
        ToolFacts::of(
            "Runs a read-only SQL query over the tables of get_schema. Aggregate and filter in SQL: few \
             rows are returned.",
        ),
        run_for_model,
    )
}

async fn run_for_model(call: Call<Read, JsonBody<ModelQuery>>) -> Result<RowsView, Error> {
    let command = QueryData {
        sql: call.body.query,
        params: call.body.params,
    };
    let Held {
        value: result,
        slots: _slots,
    } = query_data(&call.services, &call.actor, command).await?;
    let row_count = result.rows.len();
    let limit = usize::try_from(call.body.limit).unwrap_or(usize::MAX);
    let rows = result.rows.into_iter().take(limit);
    let data: serde_json::Result<Vec<_>> = rows.map(RawValue::from_string).collect();
    let data = data.map_err(|error| Error::Internal(error.to_string()))?;
    Ok(RowsView {
        columns: result.columns,
        row_count,
        rows_shown: data.len(),
        data,
    })
}
