//! `GET /api/v1/openapi.json`: this API, described.

use std::sync::OnceLock;

use actix_web::{HttpResponse, http::header::ContentType};
use labdata_application::Error;

use crate::http::{Answer, openapi::openapi};

/// The document does not change while the program runs.
static DOCUMENT: OnceLock<String> = OnceLock::new();

/// This API, described
#[utoipa::path(
    get,
    path = "/api/v1/openapi.json",
    operation_id = "openapi",
    tag = "operations",
    responses((status = 200, description = "The OpenAPI document", body = serde_json::Value))
)]
pub async fn handle() -> Answer<HttpResponse> {
    let document = if let Some(document) = DOCUMENT.get() {
        document
    } else {
        let fresh = openapi()
            .to_json()
            .map_err(|error| Error::Internal(error.to_string()))?;
        DOCUMENT.get_or_init(|| fresh)
    };
    Ok(HttpResponse::Ok()
        .content_type(ContentType::json())
        .body(document.as_str()))
}
