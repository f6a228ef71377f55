//! `POST /api/v1/tools/query`

use std::iter::once;

use labdata_application::data::query_data::{QueryData, query_data};
use labdata_operations::{ResultForm, data::query::QueryBody};
use labdata_ports::data::query::QueryResult;
use labdata_table_formats::{Encoding, FormatError, Frame};
use serde_json::Value;

use super::written::{Chunks, Written, joined};
use crate::http::{ApiResult, Call, JsonBody, Read};

/// The result in a form.
fn written(
    result: QueryResult,
    form: ResultForm,
    neutralize_formulas: bool,
) -> Result<Chunks, FormatError> {
    Ok(match form {
        ResultForm::Json => Box::new(joined(json_chunks(result))),
        ResultForm::File(format) => {
            let frame = Frame::of_json_rows(&result.columns, &result.types, result.rows)?;
            let encoding = Encoding {
                format,
                neutralize_formulas,
            };
            let frame = frame.for_encoding(encoding, &result.types)?;
            Box::new(frame.encode(format)?)
        }
    })
}

/// The result as the text of a JSON object, a chunk per row.
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

/// Runs a query, and sends its result in the form that the client accepts.
pub async fn handle(call: Call<Read, JsonBody<QueryBody>>) -> ApiResult<Written> {
    let form = call.accepted.form()?;
    let JsonBody(body) = call.body.clone();
    let neutralize = body.neutralize_formulas;
    let command = QueryData {
        sql: body.query,
        params: body.params,
    };
    let result = query_data(call.ports(), &call.actor, command).await?;
    Written::by(form, result.slots, move || {
        written(result.value, form, neutralize)
    })
    .await
}
