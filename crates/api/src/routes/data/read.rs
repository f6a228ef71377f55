//! `POST /api/v1/tools/read`

use actix_web::{HttpRequest, HttpResponse, Responder, body::BoxBody, http::header::LINK};
use labdata_application::{
    Error,
    data::read_rows::{ReadRows, read_rows},
};
use labdata_domain::data::read::{Position, RowJson, RowPage};
use labdata_operations::data::read::{ReadRowsBody, ReadRowsQuery};
use labdata_table_formats::FormatError;

use super::written::{Begun, LONG_ENOUGH};
use crate::http::{ApiResult, Call, JsonBody, Read, response::next_page};

/// Rows, rendered by the database already.
pub struct Rows {
    begun: Begun,
    next: Option<Position>,
}

impl Responder for Rows {
    type Body = BoxBody;

    fn respond_to(self, request: &HttpRequest) -> HttpResponse {
        let mut response = HttpResponse::Ok();
        let next = self.next;
        if let Some(link) = next.and_then(|next| next_page(request, &next.encode())) {
            response.insert_header((LINK, link));
        }
        response.content_type("application/json");
        self.begun.send(response)
    }
}

/// The rows as the text of a JSON array, in long chunks.
fn json_chunks(rows: Vec<RowJson>) -> impl Iterator<Item = Result<Vec<u8>, FormatError>> {
    let mut length: usize = rows.iter().map(|row| row.as_str().len() + 1).sum();
    let mut rows = rows.into_iter();
    let mut before = Some(b'[');
    std::iter::from_fn(move || {
        let mut chunk = Vec::with_capacity(length.min(LONG_ENOUGH) + 2);
        chunk.push(before.take()?);
        while let Some(row) = rows.next() {
            if chunk.len() > 1 {
                chunk.push(b',');
            }
            length = length.saturating_sub(row.as_str().len() + 1);
            chunk.extend_from_slice(row.as_str().as_bytes());
            // Not behind the last row: its chunk takes the closing bracket, and another one would begin with a comma.
            if chunk.len() >= LONG_ENOUGH && rows.len() > 0 {
                before = Some(b',');
                return Some(Ok(chunk));
            }
        }
        chunk.push(b']');
        Some(Ok(chunk))
    })
}

/// Reads rows, and sends them in long chunks.
pub async fn handle(call: Call<Read, JsonBody<ReadRowsBody>, ReadRowsQuery>) -> ApiResult<Rows> {
    let JsonBody(body) = call.body.clone();
    let query = ReadRows {
        target_name: body.target_name,
        target_type: body.target_type,
        filters: body.filters,
        columns: body.columns,
        order_by: body.order_by,
        mode: body.mode,
        limit: Some(body.limit),
        after: body.cursor.or_else(|| call.query.cursor.clone()),
        as_of: body.as_of,
    };
    let page = read_rows(call.services(), &call.actor, query).await?;
    let RowPage { rows, next } = page.value;
    let begun = Begun::of(Box::new(json_chunks(rows)), page.slots)
        .map_err(|error| Error::Internal(error.to_string()))?;
    Ok(Rows { begun, next })
}
