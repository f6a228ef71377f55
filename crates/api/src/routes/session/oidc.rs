//! `/api/v1/session/oidc`: sign-in by an identity provider.
//!
//! Browsers are sent here and to the callback; no program calls them, so no document shows them.

use std::collections::BTreeMap;

use actix_web::{
    HttpRequest, HttpResponse, ResponseError,
    http::{
        Method,
        header::{ACCEPT, CACHE_CONTROL, LOCATION, SET_COOKIE},
    },
    web::Data,
};
use labdata_application::{
    Error,
    people::oidc::{Callback, begin_oidc, finish_oidc},
};
use labdata_domain::{
    html::escaped,
    people::oidc::{ATTEMPT_LIFETIME, ReturnPath, SignInRefused},
};
use labdata_request_body::{ProblemKind, ShapeProblem};
use serde_json::{Value, json};
use url::form_urlencoded;

use crate::{
    app::App,
    http::{
        ApiError, ApiResult,
        credential::{attempt_cookie, attempt_of, session_cookie},
        endpoint::Endpoint,
    },
};

const PATH: &str = "/api/v1/session/oidc";
const CALLBACK: &str = "/api/v1/session/oidc/callback";
const ABOUT: &str = "/api/v1/session/oidc/about";

/// The endpoints.
#[must_use]
pub fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::hidden(Method::GET, PATH, begin),
        Endpoint::hidden(Method::GET, CALLBACK, finish),
        Endpoint::hidden(Method::GET, ABOUT, about),
    ]
}

/// Returns the address that begins a sign-in, null without a provider: for the page that signs people in.
pub async fn about(app: Data<App>) -> HttpResponse {
    let is_configured = app.services.oidc.is_some();
    HttpResponse::Ok()
        .insert_header((CACHE_CONTROL, "no-store"))
        .json(json!({ "url": is_configured.then_some(PATH) }))
}

/// The parameters of a request; of one that is given twice, none counts.
fn parameters(request: &HttpRequest) -> BTreeMap<String, Option<String>> {
    let mut parameters = BTreeMap::new();
    for (name, value) in form_urlencoded::parse(request.query_string().as_bytes()) {
        parameters
            .entry(name.into_owned())
            .and_modify(|value| *value = None)
            .or_insert_with(|| Some(value.into_owned()));
    }
    parameters
}

fn redirect_uri(request: &HttpRequest, app: &App) -> String {
    format!("{}{CALLBACK}", app.public_url.as_reached(request).reached)
}

/// Sends the browser to the provider.
pub async fn begin(request: HttpRequest, app: Data<App>) -> HttpResponse {
    let response = to_provider(&request, &app).await;
    response.unwrap_or_else(|error| refused(&request, &error))
}

async fn to_provider(request: &HttpRequest, app: &App) -> ApiResult<HttpResponse> {
    let given = parameters(request).remove("return_to").flatten();
    let return_to = match given {
        None => ReturnPath::default(),
        Some(path) => ReturnPath::parse(&path).ok_or_else(|| {
            let kind = ProblemKind::value_error("a path of the platform, such as /#/tables");
            ApiError::Shape(vec![ShapeProblem::of_query(
                "return_to",
                kind,
                Value::String(path),
            )])
        })?,
    };
    let begun = begin_oidc(&app.services, return_to, &redirect_uri(request, app)).await?;
    let seconds = ATTEMPT_LIFETIME.whole_seconds();
    let cookie = attempt_cookie(&app.public_url, &begun.cookie, seconds)?;
    Ok(HttpResponse::Found()
        .insert_header((LOCATION, begun.url))
        .insert_header((SET_COOKIE, cookie))
        .insert_header((CACHE_CONTROL, "no-store"))
        .finish())
}

/// Opens the session of the person that the provider names.
pub async fn finish(request: HttpRequest, app: Data<App>) -> HttpResponse {
    let response = from_provider(&request, &app).await;
    response.unwrap_or_else(|error| refused(&request, &error))
}

async fn from_provider(request: &HttpRequest, app: &App) -> ApiResult<HttpResponse> {
    let mut given = parameters(request);
    let mut parameter = |name: &str| given.remove(name).flatten();
    let (state, code) = (parameter("state"), parameter("code"));
    let (error, issuer) = (parameter("error"), parameter("iss"));
    let cookie = attempt_of(request.headers(), &app.public_url);
    let (Some(state), Some(cookie)) = (&state, cookie) else {
        return Err(Error::refused(SignInRefused::InvalidAttempt).into());
    };
    let callback = Callback {
        state,
        code: match (code.as_deref(), error.as_deref()) {
            (Some(code), None) => Ok(code),
            (_, error) => Err(error.unwrap_or("no_code")),
        },
        issuer: issuer.as_deref(),
        cookie,
        redirect_uri: &redirect_uri(request, app),
    };
    let session = finish_oidc(&app.services, &callback).await?;
    Ok(HttpResponse::SeeOther()
        .insert_header((LOCATION, session.return_to.as_str()))
        .append_header((SET_COOKIE, session_cookie(&app.public_url, &session.token)?))
        // An attempt serves once, so its cookie goes with it.
        .append_header((SET_COOKIE, attempt_cookie(&app.public_url, "", 0)?))
        .insert_header((CACHE_CONTROL, "no-store"))
        .finish())
}

/// The response to a refused sign-in: a page for browsers, JSON for programs.
fn refused(request: &HttpRequest, error: &ApiError) -> HttpResponse {
    let accept = request
        .headers()
        .get(ACCEPT)
        .and_then(|it| it.to_str().ok());
    if !accept.is_some_and(|accept| accept.contains("text/html")) {
        return error.error_response();
    }
    let reason = match error {
        ApiError::Shape(_) => "the address to return to is no path of this platform".to_owned(),
        other => other.detail(),
    };
    HttpResponse::build(error.status_code())
        .content_type("text/html; charset=utf-8")
        .insert_header((CACHE_CONTROL, "no-store"))
        .body(page(&reason))
}

/// A page in the style of the console.
fn page(reason: &str) -> String {
    let mut letters = reason.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    let sentence = escaped(&first.chain(letters).collect::<String>());
    let version = labdata_console::version();
    format!(
        r#"<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Not signed in · labdata</title>
<link rel="stylesheet" href="/console/{version}/style.css">
</head>
<body>
<main class="sign-in">
<h1>Not signed in</h1>
<p role="alert">{sentence}.</p>
<p><a href="{PATH}">Try again</a></p>
<p class="quiet"><a href="/">Sign in with an API key</a></p>
</main>
</body>
</html>
"#
    )
}
