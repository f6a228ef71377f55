//! `GET /docs`: the interactive reference. Everything it shows ships inside the program, so it
//! works offline.

use std::sync::Arc;

use actix_web::{
    HttpResponse,
    http::{
        Method,
        header::{CONTENT_ENCODING, LOCATION},
    },
    web::Path,
};
use labdata_application::Error;
use labdata_domain::refusal::Resource;
use utoipa_swagger_ui::{Config, serve};

use crate::http::{ApiResult, endpoint::Endpoint};

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

async fn file(file: Path<String>) -> ApiResult<HttpResponse> {
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
    if found.gzpipped {
        response.insert_header((CONTENT_ENCODING, "gzip"));
    }
    Ok(response
        .content_type(found.content_type)
        .body(found.bytes.into_owned()))
}
