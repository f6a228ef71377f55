//! `GET /api/v1/openapi.json`: this API, described.

use actix_web::{HttpResponse, http::header::ContentType, web::Data};
use labdata_application::Error;

use crate::http::{ApiResult, openapi::OpenApiJson};

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
