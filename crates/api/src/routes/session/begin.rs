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
use labdata_request_body::{ProblemKind, fields::optional, readers::text, shape};
use serde_json::json;

use crate::{
    http::{ApiResult, JsonBody, call::OpenCall, credential::session_cookie, error::ErrorBody},
    routes::me::MeView,
};

shape! {
    /// How to sign in: with an API key or with the token of a link.
    #[derive(Clone)]
    pub struct SessionBody {
        /// An API key. The session has its user and scopes, and ends with it.
        api_key: Option<String> = optional(text(..)),
        /// The token of a link that `labdata sign-in` printed; good once, for 30 minutes.
        token: Option<String> = optional(text(..)),
    }
    example json!({"api_key": "ldk_k3v9q2mx_…"});
    rules |at| {
        match (api_key, token) {
            (Some(None), Some(None)) => at.field("api_key").report(ProblemKind::missing()),
            (Some(Some(_)), Some(Some(_))) => {
                at.field("token").report(ProblemKind::value_error("not together with api_key"));
            }
            _ => {}
        }
    }
}

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

/// Signs in
///
/// The answer sets the cookie `labdata-session` (`__Host-labdata-session` by TLS), which is accepted
/// wherever an API key is. Changes that come with it need `Sec-Fetch-Site: same-origin` or `none`, or where
/// that header is missing the platform's own `Origin`. The session ends with its key, after 12 h without
/// use, or after 7 days. `Idempotency-Key` is refused, because the cookie would have to be stored.
#[utoipa::path(
    post,
    path = "/api/v1/session",
    operation_id = "begin_session",
    tag = "session",
    responses(
        (status = 200, description = "Organization, user and key of the session", body = MeView, headers(("Set-Cookie" = String, description = "The session"))),
        (status = 400, description = "The request bears an Idempotency-Key", body = ErrorBody),
        (status = 401, description = "The key or the link is unknown, used, revoked or expired", body = ErrorBody),
        (status = 403, description = "The key of a run on the platform opens no session", body = ErrorBody),
        (status = 422, description = "The request does not have the right shape; every problem is listed", body = crate::http::error::ShapeErrorBody),
    )
)]
pub async fn handle(call: OpenCall<JsonBody<SessionBody>>) -> ApiResult<SignedIn> {
    let JsonBody(body) = &call.body;
    let ports = &call.app.ports;
    let presented = match (&body.api_key, &body.token) {
        (_, Some(token)) => SignIn::Token(token.clone()),
        (key, None) => SignIn::ApiKey(key.clone().unwrap_or_default()),
    };
    let (token, actor) = sign_in(ports, presented).await?;
    Ok(SignedIn {
        me: identify(ports, &actor).await?.into(),
        cookie: session_cookie(&call.app.public_url, &token)?,
    })
}
