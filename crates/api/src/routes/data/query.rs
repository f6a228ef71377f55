//! `POST /api/v1/tools/query`

use std::iter::once;

use labdata_application::data::query_data::{QueryData, query_data};
use labdata_operations::ResultForm;
use labdata_ports::data::query::QueryResult;
use labdata_request_body::{
    Reader as _,
    fields::{or, required},
    readers::{any, list, text},
    shape,
};
use labdata_table_formats::{FormatError, Frame};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::written::{Chunks, Written, joined};
use crate::http::{ApiResult, Call, JsonBody, Read, error::ErrorBody};

shape! {
    /// The query to run.
    #[derive(Clone, Debug)]
    pub struct QueryBody {
        /// One SELECT, in PostgreSQL's SQL.
        query: String = required(
            text(1..).example("select name, volume from sample where volume > %s order by name"),
        ),
        /// The values of its placeholders: `%s` in turn, or `$1`, `$2`, ….
        params: Vec<Value> = or(json!([]), list(any())),
    }
    example json!({
        "query": "select name, volume from sample where volume > %s order by name",
        "params": [100],
    });
}

/// Result of a query.
#[derive(Debug, ToSchema)]
#[schema(as = QueryResult)]
pub struct QueryView {
    /// The names of the columns, in order.
    pub columns: Vec<String>,
    /// The rows, each with one value per column.
    #[schema(value_type = Vec<Vec<Value>>)]
    pub data: (),
}

/// The result in a form.
fn written(result: QueryResult, form: ResultForm) -> Result<Chunks, FormatError> {
    Ok(match form {
        ResultForm::Json => Box::new(joined(json_chunks(result))),
        ResultForm::File(format) => {
            let frame = Frame::of_json_rows(&result.columns, &result.types, result.rows)?;
            Box::new(frame.encode(format)?)
        }
    })
}

/// The result as the text of a JSON object, a piece per row.
fn json_chunks(result: QueryResult) -> impl Iterator<Item = Result<Vec<u8>, FormatError>> {
    let columns = Value::from(result.columns);
    let beginning = format!("{{\"columns\":{columns},\"data\":[");
    let rows = result.rows.into_iter().enumerate().map(|(index, row)| {
        let comma = if index > 0 { "," } else { "" };
        format!("{comma}{row}")
    });
    once(beginning)
        .chain(rows)
        .chain(once("]}".to_owned()))
        .map(|chunk| Ok(chunk.into_bytes()))
}

/// Query with SQL
///
/// One SELECT over the organization's tables: curated, core, and raw ones as one row per point; and
/// over `table`, `job`, `job_execution`, `file`, `instrument`, `ml_model`, `dataset` and
/// `organizationmember`. A reference is called by its name and `_id`. Placeholders take the type of
/// their place. At most 15 s, 10,000 rows and 16 MiB: beyond, 400 says so. Nothing is ever changed.
///
/// `Accept` chooses the form: JSON unless it names CSV, an Arrow stream or Parquet. Their columns
/// are int64, float64, bool, timestamp\[µs, UTC\], date32, and utf8 for all else, JSON included; of
/// two columns of one name, the second ends in `_2`.
#[utoipa::path(
    post,
    path = "/api/v1/tools/query",
    tag = "tools",
    operation_id = "query_data",
    responses(
        (status = 200, description = "The result", content(
            (QueryView = "application/json"),
            (String = "text/csv"),
            (String = "application/vnd.apache.arrow.stream"),
            (String = "application/vnd.apache.parquet"),
        )),
        (status = 400, description = "The query is wrong, or takes too much: the detail says what", body = ErrorBody),
        (status = 406, description = "The result has no form that `Accept` allows", body = ErrorBody),
        (status = 429, description = "Too many queries are running", body = ErrorBody),
        (status = 503, description = "Earlier results of the organization are still being sent", body = ErrorBody),
    )
)]
pub async fn handle(call: Call<Read, JsonBody<QueryBody>>) -> ApiResult<Written> {
    let form = call.accepted.form()?;
    let JsonBody(body) = call.body.clone();
    let command = QueryData {
        sql: body.query,
        params: body.params,
    };
    let result = query_data(call.ports(), &call.actor, command).await?;
    Written::by(form, result.slots, move || written(result.value, form)).await
}
