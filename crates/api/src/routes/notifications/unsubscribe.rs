//! `/unsubscribe/{token}`: what the link in an e-mail leads to. The link is the permission; no key
//! is asked for.

use actix_web::{
    HttpResponse,
    http::{Method, header::CACHE_CONTROL},
    web::{Data, Path},
};
use labdata_application::notifications::notification_preferences::unsubscribe;

use crate::{
    app::App,
    http::{ApiResult, endpoint::Endpoint},
};

const PATH: &str = "/unsubscribe/{token}";

/// The endpoints. They are no part of the API's document: people follow a link that they were sent,
/// and mail programs POST to it (RFC 8058).
#[must_use]
pub fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::hidden(Method::GET, PATH, ask),
        Endpoint::hidden(Method::POST, PATH, handle),
    ]
}

/// Asks first: those who only look at links, such as mail scanners, must not turn anything off.
pub async fn ask() -> HttpResponse {
    page(
        "<p>Turn off e-mails with notifications? They stay in your inbox on the platform.</p>\
         <form method=\"post\"><button>Turn them off</button></form>",
    )
}

/// Turns the e-mails of the user whom the link was sent to off.
///
/// # Errors
/// 404 when the link is not the platform's.
pub async fn handle(app: Data<App>, token: Path<String>) -> ApiResult<HttpResponse> {
    unsubscribe(&app.services, &token).await?;
    Ok(page(
        "<p>You will get no more e-mails with notifications.</p>",
    ))
}

fn page(content: &str) -> HttpResponse {
    HttpResponse::Ok()
        .content_type("text/html; charset=utf-8")
        .insert_header((CACHE_CONTROL, "no-store"))
        .body(format!(
            "<!DOCTYPE html><html><head><meta charset=\"utf-8\"><title>Notifications</title></head>\
             <body>{content}</body></html>"
        ))
}
