//! `POST /api/v1/tools/read`

use actix_web::{HttpRequest, HttpResponse, Responder, body::BoxBody, http::header::LINK};
use labdata_application::{
    Error,
    data::read_rows::{ReadRows, TargetType, read_rows},
};
use labdata_domain::{
    data::read::{MAX_ORDER_TERMS, Position, ReadMode, RowJson, RowPage},
    page::{DEFAULT_LIMIT, MAX_LIMIT},
};
use labdata_request_body::{
    fields::{optional, or, required},
    readers::{choice, cursor_of, list, object, text, unsigned},
    shape,
};
use labdata_table_formats::FormatError;
use serde_json::{Map, Value, json};

use super::written::{Begun, LONG_ENOUGH};
use crate::http::{ApiResult, Call, JsonBody, Read, error::ErrorBody, response::next_page};

/// Maximum number of columns of a read.
pub(super) const MAX_COLUMNS: usize = 512;

shape! {
    /// The rows to read.
    #[derive(Clone, Debug)]
    pub struct ReadRowsBody {
        /// The table's name.
        target_name: String = required(text(..)),
        /// `table` for one of the organization's, `core-table` for a core or platform table.
        target_type: TargetType = required(choice(TargetType::ALL)),
        /// Conditions by column: a value for equality, or with a test at the end of the key
        /// (`__in`, `__gt`, `__gte`, `__lt`, `__lte`, `__isnull`, `__contains`); a key may follow
        /// references (`sample__name`).
        filters: Map<String, Value> = or(json!({}), object()),
        /// `single` expects exactly one row.
        mode: ReadMode = or("multiple", choice(ReadMode::ALL)),
        /// Columns of the rows, in this order; all unless given.
        columns: Option<Vec<String>> = optional(list(text(..)).of(1..=MAX_COLUMNS)),
        /// Columns that order the rows, each after `-` where the greatest value comes first. Null is
        /// greater than every value. Rows that are equal come as without an order.
        order_by: Vec<String> = or(json!([]), list(text(..)).of(0..=MAX_ORDER_TERMS)),
        /// The most rows.
        limit: u32 = or(DEFAULT_LIMIT, unsigned(1..=MAX_LIMIT)),
        /// Start of the page, from the previous page's `Link` header.
        cursor: Option<Position> = optional(cursor_of(Position::decode)),
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
        cursor: Option<Position> = optional(cursor_of(Position::decode)),
    }
}

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

/// The rows as the text of a JSON array, in long pieces.
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
            if chunk.len() >= LONG_ENOUGH && rows.len() > 0 {
                before = Some(b',');
                return Some(Ok(chunk));
            }
        }
        chunk.push(b']');
        Some(Ok(chunk))
    })
}

/// Read rows
///
/// Always an array, of one row in single mode. Unless `order_by` is given, rows come by descending
/// primary key (newest first for generated ids), points of raw tables series by series in order. The
/// next page is in the `Link` header: the same body to that URL. A page ends before its limit with the row that brings it
/// to 8 MiB.
#[utoipa::path(
    post,
    path = "/api/v1/tools/read",
    tag = "tools",
    operation_id = "read_rows",
    responses(
        (status = 200, description = "The rows", body = [Object]),
        (status = 503, description = "Earlier pages of the organization are still being sent", body = ErrorBody),
    )
)]
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
    };
    let page = read_rows(call.ports(), &call.actor, query).await?;
    let RowPage { rows, next } = page.value;
    let begun = Begun::of(Box::new(json_chunks(rows)), page.slots)
        .map_err(|error| Error::Internal(error.to_string()))?;
    Ok(Rows { begun, next })
}
