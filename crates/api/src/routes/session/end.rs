//! `DELETE /api/v1/session`

use actix_web::{
    HttpRequest, HttpResponse, Responder,
    body::BoxBody,
    http::header::{HeaderValue, SET_COOKIE},
};
use labdata_application::people::sessions::sign_out;

use crate::http::{
    ApiResult, Call, NoBody,
    credential::{Credential, ended_cookie},
    error::ErrorBody,
    scope::AnyScope,
};

/// The removal of the cookie.
pub struct SignedOut(HeaderValue);

impl Responder for SignedOut {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        HttpResponse::NoContent()
            .insert_header((SET_COOKIE, self.0))
            .finish()
    }
}

/// Signs out
///
/// Ends the session of the cookie: at once on the server that is asked, within 5 s on every other. A
/// request with an API key has no session to end.
#[utoipa::path(
    delete,
    path = "/api/v1/session",
    operation_id = "end_session",
    tag = "session",
    responses(
        (status = 204, description = "It has ended"),
        (status = 403, description = "The cookie came with a request from a page of another site", body = ErrorBody),
    )
)]
pub async fn handle(call: Call<AnyScope, NoBody>) -> ApiResult<SignedOut> {
    let public_url = &call.app.public_url;
    if let Credential::Session(token) = Credential::of(&call.request, public_url)? {
        sign_out(call.ports(), token.reveal()).await?;
    }
    Ok(SignedOut(ended_cookie(public_url)?))
}
