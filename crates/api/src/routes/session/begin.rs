//! `POST /api/v1/session`

use actix_web::{
    HttpRequest, HttpResponse, Responder,
    body::BoxBody,
    http::header::{CACHE_CONTROL, HeaderValue, SET_COOKIE},
};
use labdata_application::people::{
    identify::identify,
    sessions::{SignIn, sign_in},
};
use labdata_operations::people::{me::MeView, session::begin::SessionBody};

use crate::http::{ApiResult, JsonBody, call::OpenCall, credential::session_cookie};

/// The caller, with the cookie.
pub struct SignedIn {
    me: MeView,
    cookie: HeaderValue,
}

impl Responder for SignedIn {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        HttpResponse::Ok()
            .insert_header((SET_COOKIE, self.cookie))
            .insert_header((CACHE_CONTROL, "no-store"))
            .json(self.me)
    }
}

/// Signs in.
pub async fn handle(call: OpenCall<JsonBody<SessionBody>>) -> ApiResult<SignedIn> {
    let JsonBody(body) = &call.body;
    let services = &call.app.services;
    let presented = match (&body.api_key, &body.token) {
        (_, Some(token)) => SignIn::Token(token.clone()),
        (key, None) => SignIn::ApiKey(key.clone().unwrap_or_default()),
    };
    let (token, actor) = sign_in(services, presented).await?;
    Ok(SignedIn {
        me: identify(services, &call.app.platform.agent, &actor)
            .await?
            .into(),
        cookie: session_cookie(&call.app.public_url, &token)?,
    })
}
