//! Response types of endpoints.

use actix_web::{
    HttpRequest, HttpResponse, Responder, ResponseError,
    body::BoxBody,
    http::header::{ContentType, HeaderValue, LINK},
};
use labdata_application::Error;
use labdata_domain::{
    page::{Cursor, Page},
    timestamp,
};
use labdata_limits::Slot;
use serde::{Serialize, Serializer};
use time::OffsetDateTime;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{KnownFormat, ObjectBuilder, RefOr, Schema, SchemaFormat, schema::Type},
};

use super::{ApiError, request_url::url_of_path, serve::send_counted};

/// Result of a handler: a response, or an error that [`super::error`] maps to one.
pub type ApiResult<T> = Result<T, ApiError>;

/// A 204 response without a body.
#[derive(Clone, Copy, Debug)]
pub struct NoContent;

impl Responder for NoContent {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        HttpResponse::NoContent().finish()
    }
}

/// An array of views, with a `Link` header to the next page if there is one.
#[derive(Debug)]
pub struct Listing<V> {
    views: Vec<V>,
    next: Option<Cursor>,
    /// Counts the list until it is sent.
    slot: Option<Slot>,
}

impl<V> Listing<V> {
    /// Creates a listing without items.
    #[must_use]
    pub const fn empty() -> Self {
        Self {
            views: Vec::new(),
            next: None,
            slot: None,
        }
    }

    /// The same, counted until its last byte is sent: for lists that can be long.
    #[must_use]
    pub fn counted(mut self, slot: Slot) -> Self {
        self.slot = Some(slot);
        self
    }

    /// Converts a page; `view` converts each item.
    pub fn of<T>(page: Page<T>, view: impl Fn(T) -> V) -> Self {
        Self {
            views: page.items.into_iter().map(view).collect(),
            next: page.next,
            slot: None,
        }
    }
}

impl<V: Serialize> Responder for Listing<V> {
    type Body = BoxBody;

    fn respond_to(self, request: &HttpRequest) -> HttpResponse {
        let mut response = HttpResponse::Ok();
        if let Some(link) = self.next.and_then(|next| next_link(request, &next)) {
            response.insert_header((LINK, link));
        }
        let Some(slot) = self.slot else {
            return response.json(self.views);
        };
        match serde_json::to_vec(&self.views) {
            Ok(body) => {
                response.content_type(ContentType::json());
                send_counted(response, body.into(), slot)
            }
            Err(error) => ApiError::from(Error::Internal(error.to_string())).error_response(),
        }
    }
}

/// Builds the `Link` header of the next page: the path that the client called, below the platform's
/// public URL, with `next` as the cursor.
#[must_use]
pub fn next_link(request: &HttpRequest, next: &Cursor) -> Option<HeaderValue> {
    next_page(request, &next.encode())
}

/// Like [`next_link`], for a cursor that is already encoded.
#[must_use]
pub fn next_page(request: &HttpRequest, cursor: &str) -> Option<HeaderValue> {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    for (name, value) in url::form_urlencoded::parse(request.query_string().as_bytes()) {
        // All other parameters stay, so that the next page has the same filters.
        if name != "cursor" {
            query.append_pair(&name, &value);
        }
    }
    let query = query.append_pair("cursor", cursor).finish();
    // An absolute URL: a proxy may serve the API under another host or prefix.
    let url = url_of_path(request);
    HeaderValue::from_str(&format!("<{url}?{query}>; rel=\"next\"")).ok()
}

/// A point in time in the API's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamp(pub OffsetDateTime);

impl From<OffsetDateTime> for Timestamp {
    fn from(at: OffsetDateTime) -> Self {
        Self(at)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&timestamp::render(self.0))
    }
}

impl PartialSchema for Timestamp {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .description(Some("RFC 3339, UTC, microseconds at most"))
            .examples(["2026-03-01T12:00:00.123456Z"])
            .into()
    }
}

impl ToSchema for Timestamp {}
