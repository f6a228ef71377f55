//! `POST /run-key`: exchanges the nonce of a run for its key. The nonce is the permission; no key is
//! asked for.

use actix_web::{
    HttpRequest, HttpResponse,
    http::{Method, header::CACHE_CONTROL},
    web::Data,
};
use labdata_application::work::{begin_run::KEY_PATH, redeem_nonce::redeem_nonce};
use serde::Serialize;

use crate::{
    app::App,
    http::{ApiResult, endpoint::Endpoint, scope::presented_key},
};

#[derive(Serialize)]
struct RunKeyView<'a> {
    key: &'a str,
}

/// The endpoints. They are no part of the API's document: only the entry points of runs call them.
#[must_use]
pub fn endpoints() -> Vec<Endpoint> {
    vec![Endpoint::hidden(Method::POST, KEY_PATH, handle)]
}

/// Exchanges the nonce in `Authorization: Bearer <nonce>`.
///
/// # Errors
/// 401 for a nonce that is unknown, expired or used.
pub async fn handle(app: Data<App>, request: HttpRequest) -> ApiResult<HttpResponse> {
    let key = redeem_nonce(&app.services, presented_key(&request)?).await?;
    Ok(HttpResponse::Ok()
        .insert_header((CACHE_CONTROL, "no-store"))
        .json(RunKeyView { key: key.reveal() }))
}
