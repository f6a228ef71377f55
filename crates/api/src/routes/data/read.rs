//! `POST /api/v1/tools/read`

use actix_web::{HttpRequest, HttpResponse, Responder, body::BoxBody, http::header::LINK};
use labdata_application::data::read_rows::{ReadRows, TargetType, read_rows};
use labdata_domain::{
    data::read::{Position, ReadMode, RowJson, RowPage},
    page::{DEFAULT_LIMIT, MAX_LIMIT},
};
use labdata_request_body::{
    fields::{optional, or, required},
    readers::{choice, cursor_of, object, text, unsigned},
    shape,
};
use serde_json::{Map, Value, json};

use crate::http::{Answer, Call, JsonBody, Read, answer::next_page};

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
        /// The most rows.
        limit: u32 = or(DEFAULT_LIMIT, unsigned(1..=MAX_LIMIT)),
        /// Start of the page, from the previous page's `Link` header.
        cursor: Option<Position> = optional(cursor_of(Position::decode)),
    }
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
#[derive(Debug)]
pub struct Rows(RowPage);

impl Responder for Rows {
    type Body = BoxBody;

    fn respond_to(self, request: &HttpRequest) -> HttpResponse {
        let mut answer = HttpResponse::Ok();
        if let Some(link) = self
            .0
            .next
            .and_then(|next| next_page(request, &next.encode()))
        {
            answer.insert_header((LINK, link));
        }
        answer
            .content_type("application/json")
            .body(json_array(&self.0.rows))
    }
}

/// The rows as the text of a JSON array.
fn json_array(rows: &[RowJson]) -> String {
    let length: usize = rows.iter().map(|row| row.as_str().len() + 1).sum();
    let mut text = String::with_capacity(length + 2);
    text.push('[');
    for (index, row) in rows.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str(row.as_str());
    }
    text.push(']');
    text
}

/// Read rows
///
/// Always an array, of one row in single mode. Rows come by descending primary key (newest first
/// for generated ids), points of raw tables series by series in order. The next page is in the
/// `Link` header: the same body to that URL.
#[utoipa::path(
    post,
    path = "/api/v1/tools/read",
    tag = "tools",
    operation_id = "read_rows",
    responses((status = 200, description = "The rows", body = [Object]))
)]
pub async fn handle(call: Call<Read, JsonBody<ReadRowsBody>, ReadRowsQuery>) -> Answer<Rows> {
    let JsonBody(body) = call.body.clone();
    let query = ReadRows {
        target_name: body.target_name,
        target_type: body.target_type,
        filters: body.filters,
        mode: body.mode,
        limit: Some(body.limit),
        after: body.cursor.or_else(|| call.query.cursor.clone()),
    };
    Ok(Rows(read_rows(call.ports(), &call.actor, query).await?))
}
