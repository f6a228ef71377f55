//! `GET /api/v1/ml-models/{ml_model_id}/report`

use actix_web::{
    HttpResponse,
    http::header::{CONTENT_SECURITY_POLICY, ContentType},
};
use labdata_application::models::get_report::get_report;
use labdata_domain::refusal::Resource;
use labdata_operations::models::{ModelPath, VersionQuery};

use crate::http::{ApiResult, Call, NoBody, OrNotFound, Read, response::send_counted};

/// The page has its styles and pictures in itself, runs no script, and has no origin.
const CONTENT_POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox";

/// Shows the results of a training as a page.
pub async fn handle(call: Call<Read, NoBody, VersionQuery, ModelPath>) -> ApiResult<HttpResponse> {
    let id = call.path.ml_model_id.or_not_found(Resource::Model)?;
    let number = call.query.number()?;
    let page = get_report(call.services(), &call.actor, id, number).await?;
    let mut response = HttpResponse::Ok();
    response
        .content_type(ContentType::html())
        .insert_header((CONTENT_SECURITY_POLICY, CONTENT_POLICY));
    Ok(send_counted(response, page.value.into(), page.slots))
}
