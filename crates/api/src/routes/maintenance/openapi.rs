//! `GET /api/v1/openapi.json`: this API, described.

use std::sync::LazyLock;

use actix_web::{
    HttpResponse,
    http::header::ContentType,
    web::{Bytes, Data},
};
use labdata_application::Error;

use crate::http::ApiResult;

/// The document as JSON, generated on first use.
pub type OpenApiJson = LazyLock<serde_json::Result<Bytes>>;

/// Sends the document.
pub async fn handle(document: Data<OpenApiJson>) -> ApiResult<HttpResponse> {
    let document = document
        .as_ref()
        .as_ref()
        .map_err(|error| Error::Internal(error.to_string()))?;
    Ok(HttpResponse::Ok()
        .content_type(ContentType::json())
        .body(document.clone()))
}
