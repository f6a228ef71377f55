//! The tool `query_data`.

use async_trait::async_trait;
use labdata_application::{
    Error,
    agent::tools::ToolContext,
    data::query_data::{QueryData, query_data},
};
use labdata_domain::data::query::MAX_LENGTH;
use labdata_request_body::{
    fields::{or, required},
    readers::{any, list, text, unsigned},
    shape,
};
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};

use super::own::OwnTool;

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

/// Rows of a query. They are JSON texts already, which `output!` does not take.
#[derive(Serialize)]
pub(super) struct RowsView {
    columns: Vec<String>,
    /// Number of rows of the whole result.
    row_count: usize,
    rows_shown: usize,
    data: Vec<Box<RawValue>>,
}

/// Queries in SQL.
pub(super) struct QueryDataTool;

#[async_trait]
impl OwnTool for QueryDataTool {
    type Input = QueryDataInput;
    type Output = RowsView;
    const NAME: &'static str = "query_data";
    const DESCRIPTION: &'static str = "Runs a read-only SQL query over the tables of get_schema. Aggregate \
        and filter in SQL: few rows are returned.";

    async fn run(
        &self,
        context: &ToolContext<'_>,
        input: QueryDataInput,
    ) -> Result<RowsView, Error> {
        let command = QueryData {
            sql: input.query,
            params: input.params,
        };
        let result = query_data(context.ports, context.actor, command)
            .await?
            .value;
        let row_count = result.rows.len();
        let limit = usize::try_from(input.limit).unwrap_or(usize::MAX);
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
}
