//! `GET /docs`: the interactive reference. Everything it shows ships inside the program, so it
//! works offline.

use std::{io::Read as _, sync::Arc};

use actix_web::{
    HttpRequest, HttpResponse,
    http::{
        Method,
        header::{ACCEPT_ENCODING, CONTENT_ENCODING, LOCATION, VARY},
    },
    web::Path,
};
use flate2::read::GzDecoder;
use labdata_application::Error;
use labdata_domain::refusal::Resource;
use utoipa_swagger_ui::{Config, serve};

use crate::http::{ApiResult, accept::accepts_gzip, endpoint::Endpoint};

pub(in crate::routes) fn endpoints() -> [Endpoint; 2] {
    [
        Endpoint::hidden(Method::GET, "/docs", redirect),
        Endpoint::hidden(Method::GET, "/docs/{file:.*}", file),
    ]
}

/// The page's own links are relative to `/docs/`.
async fn redirect() -> HttpResponse {
    HttpResponse::PermanentRedirect()
        .insert_header((LOCATION, "docs/"))
        .finish()
}

async fn file(file: Path<String>, request: HttpRequest) -> ApiResult<HttpResponse> {
    let config = Config::from("../api/v1/openapi.json")
        // A key stays in the page's memory: any script of this origin could read it from the storage.
        .persist_authorization(false)
        .try_it_out_enabled(true)
        .display_request_duration(true)
        // The badge would ask a server on the internet about the document.
        .validator_url("none");
    let found =
        serve(&file, Arc::new(config)).map_err(|error| Error::Internal(error.to_string()))?;
    let found = found.ok_or_else(|| Error::not_found(Resource::Page))?;
    let mut response = HttpResponse::Ok();
    response
        .content_type(found.content_type)
        .insert_header((VARY, ACCEPT_ENCODING.as_str()));
    if !found.gzpipped {
        return Ok(response.body(found.bytes.into_owned()));
    }
    if accepts_gzip(request.headers()) {
        response.insert_header((CONTENT_ENCODING, "gzip"));
        return Ok(response.body(found.bytes.into_owned()));
    }
    let mut bytes = Vec::new();
    GzDecoder::new(&*found.bytes)
        .read_to_end(&mut bytes)
        .map_err(|error| Error::Internal(error.to_string()))?;
    Ok(response.body(bytes))
}
