//! `DELETE /api/v1/session`

use actix_web::{
    HttpRequest, HttpResponse, Responder,
    body::BoxBody,
    http::header::{HeaderValue, SET_COOKIE},
};
use labdata_application::people::sessions::sign_out;

use crate::http::{
    AnyScope, ApiResult, Call, NoBody,
    credential::{Credential, ended_cookie},
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

/// Signs out.
pub async fn handle(call: Call<AnyScope, NoBody>) -> ApiResult<SignedOut> {
    let public_url = &call.app.public_url;
    if let Credential::Session(token) = Credential::of(&call.request, public_url)? {
        sign_out(call.services(), token.reveal()).await?;
    }
    Ok(SignedOut(ended_cookie(public_url)?))
}
