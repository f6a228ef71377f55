//! `GET /` and `/console/…`: the console. It is part of the program and works offline.

use actix_web::{
    HttpRequest, HttpResponse,
    http::{
        Method,
        header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, HeaderMap, LOCATION, VARY},
    },
    web::Path,
};
use labdata_application::Error;
use labdata_console::Plots;
use labdata_domain::refusal::Resource;
use uuid::Uuid;

use crate::http::{ApiResult, accept::accepts_gzip, endpoint::Endpoint};

/// Cache policy of the files of a version: they never change, as another version has other addresses.
const FOR_EVER: &str = "public, max-age=31536000, immutable";

pub(in crate::routes) fn endpoints() -> [Endpoint; 5] {
    [
        Endpoint::hidden(Method::GET, "/jobs/{id}", job),
        Endpoint::hidden(Method::GET, "/job-executions/{id}", execution),
        Endpoint::hidden(Method::GET, "/ml-models/{id}", model),
        Endpoint::hidden(Method::GET, "/", page),
        Endpoint::hidden(Method::GET, "/console/{version}/{file:.*}", file),
    ]
}

async fn page() -> HttpResponse {
    HttpResponse::Ok()
        .content_type("text/html; charset=utf-8")
        .insert_header((CACHE_CONTROL, "no-cache"))
        .body(labdata_console::page())
}

/// Leads from the path of a notice, as e-mails have it, to its page. Relative, so that it works below a
/// proxy's prefix.
fn lead_to(page: &str, id: Uuid) -> HttpResponse {
    HttpResponse::Found()
        .insert_header((LOCATION, format!("../#/{page}/{id}")))
        .finish()
}

async fn job(id: Path<String>) -> ApiResult<HttpResponse> {
    Ok(lead_to("jobs", parsed(&id)?))
}

async fn execution(id: Path<String>) -> ApiResult<HttpResponse> {
    Ok(lead_to("executions", parsed(&id)?))
}

async fn model(id: Path<String>) -> ApiResult<HttpResponse> {
    Ok(lead_to("models", parsed(&id)?))
}

fn parsed(id: &str) -> Result<Uuid, Error> {
    id.parse().map_err(|_| Error::not_found(Resource::Page))
}

async fn file(request: HttpRequest, place: Path<(String, String)>) -> ApiResult<HttpResponse> {
    let (version, path) = place.into_inner();
    let plots = labdata_console::plots();
    if version == plots.version && path == Plots::PATH {
        return script_of_plots(plots, request.headers());
    }
    let asset =
        labdata_console::asset(&version, &path).ok_or_else(|| Error::not_found(Resource::File))?;
    let mut response = HttpResponse::Ok();
    response
        .content_type(asset.content_type)
        .insert_header((CACHE_CONTROL, FOR_EVER))
        .insert_header((VARY, ACCEPT_ENCODING.as_str()));
    match labdata_console::packed_asset(&version, &path) {
        Some(packed) if accepts_gzip(request.headers()) => Ok(response
            .insert_header((CONTENT_ENCODING, "gzip"))
            .body(packed)),
        _ => Ok(response.body(asset.bytes)),
    }
}

/// Sends plotly.js as it is held, compressed, and unpacked to those who accept no gzip.
fn script_of_plots(plots: &Plots, request: &HeaderMap) -> ApiResult<HttpResponse> {
    let mut response = HttpResponse::Ok();
    response
        .content_type(Plots::CONTENT_TYPE)
        .insert_header((CACHE_CONTROL, FOR_EVER))
        .insert_header((VARY, ACCEPT_ENCODING.as_str()));
    if accepts_gzip(request) {
        return Ok(response
            .insert_header((CONTENT_ENCODING, "gzip"))
            .body(plots.gzip()));
    }
    let script = plots
        .unpacked()
        .map_err(|problem| Error::Internal(problem.to_string()))?;
    Ok(response.body(script))
}
