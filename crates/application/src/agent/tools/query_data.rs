//! The tool `query_data`.

use async_trait::async_trait;
use labdata_domain::data::query::MAX_LENGTH;
use labdata_request_body::{
    fields::{or, required},
    readers::{any, list, text, unsigned},
    shape,
};
use serde_json::{Value, json};

use super::{ToolContext, TypedTool};
use crate::{
    Error,
    data::query_data::{QueryData, query_data},
};

/// Number of rows that are returned unless the model asks for another.
const DEFAULT_ROWS: u32 = 200;

/// Maximum number of rows that are returned.
const MAX_ROWS: u32 = 1_000;

shape! {
    /// Arguments of `query_data`.
    pub(super) struct QueryDataInput {
        /// One SELECT statement in the SQL of PostgreSQL.
        query: String = required(text(1..=MAX_LENGTH)),
        /// Values of the placeholders $1, $2, … in the query.
        params: Vec<Value> = or(json!([]), list(any())),
        /// Maximum number of rows to return.
        limit: u32 = or(DEFAULT_ROWS, unsigned(1..=MAX_ROWS)),
    }
}

/// Queries in SQL.
pub(super) struct QueryDataTool;

#[async_trait]
impl TypedTool for QueryDataTool {
    type Input = QueryDataInput;
    const NAME: &'static str = "query_data";
    const DESCRIPTION: &'static str = "Runs a read-only SQL query over the tables of get_schema. Aggregate \
        and filter in SQL: few rows are returned.";
    const NEEDS_WRITE: bool = false;

    async fn run(&self, context: &ToolContext<'_>, input: QueryDataInput) -> Result<String, Error> {
        let command = QueryData {
            sql: input.query,
            params: input.params,
        };
        let result = query_data(context.ports, context.actor, command).await?;
        let limit = usize::try_from(input.limit).unwrap_or(usize::MAX);
        let displayed: Vec<&str> = result.rows.iter().take(limit).map(String::as_str).collect();
        // Rows are JSON texts already.
        Ok(format!(
            "{{\"columns\":{},\"row_count\":{},\"rows_shown\":{},\"data\":[{}]}}",
            json!(result.columns),
            result.rows.len(),
            displayed.len(),
            displayed.join(",")
        ))
    }
}
