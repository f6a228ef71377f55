//! `POST /api/v1/tools/query`

use std::iter::once;

use actix_web::Either;
use labdata_application::data::{
    plans::Plans,
    query_data::{QueryData, query_data, stream_query},
};
use labdata_operations::{ResultForm, data::query::QueryBody};
use labdata_ports::data::query::QueryResult;
use labdata_table_formats::{Encoding, FormatError};
use serde_json::Value;

use super::written::{Chunks, Written, joined};
use crate::http::{ApiError, ApiResult, Call, JsonBody, Read, table_stream::TableStream};

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

/// Runs a query: as JSON its result is whole first, as a file it is sent while it is read.
pub async fn handle(
    call: Call<Read, JsonBody<QueryBody>>,
) -> ApiResult<Either<Written, TableStream>> {
    let form = call.accepted.form()?;
    let JsonBody(body) = call.body.clone();
    let neutralize_formulas = body.neutralize_formulas;
    let command = QueryData {
        sql: body.query,
        params: body.params,
    };
    match form {
        ResultForm::Json => {
            let result = query_data(call.services(), &call.actor, command).await?;
            let value = result.value;
            let written = move || {
                let chunks: Chunks = Box::new(joined(json_chunks(value)));
                Ok::<_, FormatError>(chunks)
            };
            Written::by(form, result.slots, written)
                .await
                .map(Either::Left)
        }
        ResultForm::File(format) => {
            let encoding = Encoding {
                format,
                neutralize_formulas,
            };
            file(&call, command, encoding).await.map(Either::Right)
        }
    }
}

async fn file(
    call: &Call<Read, JsonBody<QueryBody>>,
    command: QueryData,
    encoding: Encoding,
) -> ApiResult<TableStream> {
    let mut plans = Plans::default();
    loop {
        let query = stream_query(call.services(), &call.actor, command.clone()).await?;
        let services = call.services().clone();
        let stream = TableStream::of_query(encoding, call.app.stall, |mut encoder| async move {
            query.send(&services, &mut encoder).await?;
            encoder.end().await
        });
        match stream.await {
            Err(ApiError::UseCase(failure)) => plans.again(failure)?,
            begun => return begun,
        }
    }
}
