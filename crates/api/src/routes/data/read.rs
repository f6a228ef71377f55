//! `POST /api/v1/tools/read`

use actix_web::{HttpRequest, HttpResponse, Responder, body::BoxBody, http::header::LINK};
use labdata_application::data::read_rows::{ReadMode, ReadRows, TargetType, read_rows};
use labdata_domain::{
    data::read::{Position, RowJson, RowPage},
    page::MAX_LIMIT,
};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use crate::http::{
    Answer, Call, JsonBody, Read,
    answer::next_page,
    shape::{
        Fields, Kind, Place, Shape,
        readers::{choice, object, text, unsigned},
    },
};

/// Which rows to read.
#[derive(Clone, Debug, ToSchema)]
pub struct ReadRowsBody {
    /// The table's name.
    target_name: String,
    /// `table` for one of the organization's, `core-table` for a core or platform table.
    #[schema(value_type = String, example = "table")]
    target_type: TargetType,
    /// Conditions by column: a value for equality, or with a test at the end of the key
    /// (`__in`, `__gt`, `__gte`, `__lt`, `__lte`, `__isnull`, `__contains`); a key may follow
    /// references (`sample__name`).
    #[schema(value_type = Option<Object>)]
    filters: Map<String, Value>,
    /// `single` or `multiple`.
    #[schema(value_type = Option<String>, example = "multiple")]
    mode: ReadMode,
    /// The most rows, 1 to 1000; 50 unless given.
    limit: Option<u32>,
    /// Where the page starts: from the previous page's `Link` header.
    #[schema(value_type = Option<String>)]
    cursor: Option<Position>,
}

const TARGET_TYPES: [(&str, TargetType); 2] = [
    ("table", TargetType::Table),
    ("core-table", TargetType::CoreTable),
];

const MODES: [(&str, ReadMode); 2] = [
    ("single", ReadMode::Single),
    ("multiple", ReadMode::Multiple),
];

impl Shape for ReadRowsBody {
    fn read(value: Value, place: &Place<'_>) -> Option<Self> {
        let mut fields = Fields::of(value, place)?;
        let target_name = fields.required("target_name", text(..));
        let target_type = fields.required("target_type", choice(&TARGET_TYPES));
        let filters = fields.nullable("filters", object());
        let mode = fields.nullable("mode", choice(&MODES));
        let limit = fields.nullable("limit", unsigned(1..=MAX_LIMIT));
        let cursor = fields.nullable("cursor", position);
        Some(Self {
            target_name: target_name?,
            target_type: target_type?,
            filters: filters?.unwrap_or_default(),
            mode: mode?.unwrap_or_default(),
            limit: limit?,
            cursor: cursor?,
        })
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "this is the form of a reader"
)]
fn position(value: Value, place: &Place<'_>) -> Option<Position> {
    let position = value.as_str().and_then(Position::decode);
    position.or_else(|| place.refuse(Kind::value_error("not a cursor of this list")))
}

/// The next page's place, as its `Link` carries it; the same body is sent again.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ReadRowsQuery {
    /// Where the page starts; the body's `cursor` wins.
    #[param(value_type = Option<String>)]
    cursor: Option<Position>,
}

impl Shape for ReadRowsQuery {
    fn read(value: Value, place: &Place<'_>) -> Option<Self> {
        let cursor = Fields::of(value, place)?.nullable("cursor", position);
        Some(Self { cursor: cursor? })
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
    params(ReadRowsQuery),
    request_body = ReadRowsBody,
    responses((status = 200, description = "The rows", body = [Object]))
)]
pub async fn handle(call: Call<Read, JsonBody<ReadRowsBody>, ReadRowsQuery>) -> Answer<Rows> {
    let JsonBody(body) = call.body.clone();
    let query = ReadRows {
        target_name: body.target_name,
        target_type: body.target_type,
        filters: body.filters,
        mode: body.mode,
        limit: body.limit,
        after: body.cursor.or_else(|| call.query.cursor.clone()),
    };
    Ok(Rows(read_rows(call.ports(), &call.actor, query).await?))
}
