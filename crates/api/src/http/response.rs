//! Responses of operations.

use std::convert::Infallible;

use actix_web::{
    HttpRequest, HttpResponse, HttpResponseBuilder,
    http::{
        StatusCode,
        header::{ContentType, HeaderValue, LINK},
    },
    web::Bytes,
};
use labdata_limits::{Slot, sending::while_read};
use labdata_operations::Reply;

use super::request::url_of_path;

/// Builds the `Link` header of the next page: the path that the client called, below the platform's
/// public URL, with that cursor.
pub(crate) fn next_page(request: &HttpRequest, cursor: &str) -> Option<HeaderValue> {
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

/// Length in bytes from which a counted response is sent in chunks.
const LONG: usize = 128 << 10;

/// Makes the response of an operation.
pub(crate) fn respond(request: &HttpRequest, reply: Reply) -> HttpResponse {
    let Some(json) = reply.json else {
        return HttpResponse::NoContent().finish();
    };
    let mut response = HttpResponseBuilder::new(StatusCode::OK);
    response.content_type(ContentType::json());
    if let Some(link) = reply.next.and_then(|next| next_page(request, &next)) {
        response.insert_header((LINK, link));
    }
    match reply.slot {
        Some(slot) => send_counted(response, json, slot),
        None => response.body(json),
    }
}

/// Sends a body; a long one holds the slot until its last chunk is sent.
pub(crate) fn send_counted(
    mut response: HttpResponseBuilder,
    body: Bytes,
    slot: Slot,
) -> HttpResponse {
    // A single chunk: streaming it would only cost the response its Content-Length.
    if body.len() <= LONG {
        return response.body(body);
    }
    let next = async |(mut rest, slot): (Bytes, Slot)| {
        let chunk = rest.split_to(rest.len().min(LONG));
        Ok::<_, Infallible>((!chunk.is_empty()).then_some((chunk, (rest, slot))))
    };
    response.streaming(while_read((body, slot), next))
}
