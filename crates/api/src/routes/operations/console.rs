//! `GET /` and `/console/…`: the console. It is part of the program and works offline.

use actix_web::{
    HttpResponse,
    http::{Method, header::CACHE_CONTROL},
    web::Path,
};
use labdata_application::Error;

use crate::http::{Answer, endpoint::Endpoint};

/// Where the files of a version may be kept for ever: another version has other addresses.
const FOR_EVER: &str = "public, max-age=31536000, immutable";

pub(in crate::routes) fn endpoints() -> [Endpoint; 2] {
    [
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

async fn file(place: Path<(String, String)>) -> Answer<HttpResponse> {
    let (version, path) = place.into_inner();
    let asset = labdata_console::asset(&version, &path).ok_or(Error::NotFound("file"))?;
    Ok(HttpResponse::Ok()
        .content_type(asset.content_type)
        .insert_header((CACHE_CONTROL, FOR_EVER))
        .body(asset.bytes))
}
