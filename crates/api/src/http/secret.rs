//! Answers that hold a secret: never cached, never stored.

use actix_web::{
    Handler, HttpRequest, HttpResponse, Responder,
    http::header::{CACHE_CONTROL, HeaderValue},
};
use labdata_application::Error;
use labdata_domain::people::SECRET_IS_NOT_REPLAYED;

use super::{ApiError, call::Call};

/// Calls the handler and marks its answer `no-store`. Refuses an idempotency key: a stored response
/// would be a stored secret.
pub(super) async fn response<H, S, B, Q, P>(
    request: HttpRequest,
    call: Call<S, B, Q, P>,
    handler: H,
) -> HttpResponse
where
    H: Handler<(Call<S, B, Q, P>,)>,
    H::Output: Responder,
{
    if call.body_sha256.is_some() {
        let refusal = Error::Invalid(SECRET_IS_NOT_REPLAYED.to_owned());
        return HttpResponse::from_error(ApiError::from(refusal));
    }
    let output = handler.call((call,)).await;
    let mut response = output.respond_to(&request).map_into_boxed_body();
    let no_store = HeaderValue::from_static("no-store");
    response.headers_mut().insert(CACHE_CONTROL, no_store);
    response
}
