//! `GET /api/v1/openapi.json`: this API, described.

use actix_web::{HttpResponse, http::header::ContentType, web::Data};
use labdata_application::Error;

use crate::http::{ApiResult, openapi::OpenApiJson};

/// This API, described
///
/// OpenAPI 3.1, made of the endpoints of this server. No API key is needed.
#[utoipa::path(
    get,
    path = "/api/v1/openapi.json",
    operation_id = "openapi",
    tag = "operations",
    responses((status = 200, description = "The OpenAPI document", body = serde_json::Value))
)]
pub async fn handle(document: Data<OpenApiJson>) -> ApiResult<HttpResponse> {
    let document = document
        .as_ref()
        .as_ref()
        .map_err(|error| Error::Internal(error.to_string()))?;
    Ok(HttpResponse::Ok()
        .content_type(ContentType::json())
        .body(document.clone()))
}
