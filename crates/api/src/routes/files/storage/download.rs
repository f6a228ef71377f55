//! `GET /storage/…` and `HEAD /storage/…`

use actix_web::{
    HttpRequest, HttpResponse,
    body::SizedStream,
    http::{
        Method, StatusCode,
        header::{
            ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_RANGE,
            CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderName, IF_NONE_MATCH, IF_RANGE,
            RANGE,
        },
    },
    web::Data,
};
use futures::{StreamExt, stream};
use labdata_application::files::open_download::{Download, open_download};
use labdata_domain::files::disposition::attachment;

use super::{
    headers,
    range::{Wanted, wanted},
    refusal::Refusal,
    signed,
};
use crate::app::App;

/// Serves a signed download URL, as an attachment, whole or in part.
///
/// # Errors
/// [`Refusal`].
pub async fn handle(request: HttpRequest, app: Data<App>) -> Result<HttpResponse, Refusal> {
    let headers = headers(&request);
    let download = open_download(&app.services, &signed(&request, &headers)).await?;
    // An object never changes, so its key is its version.
    let etag = format!("\"{}\"", download.grant.object);
    if header(&request, IF_NONE_MATCH).is_some_and(|known| matches(known, &etag)) {
        return Ok(HttpResponse::NotModified()
            .insert_header((ETAG, etag))
            .finish());
    }
    let same = header(&request, IF_RANGE).is_none_or(|known| known == etag);
    let asked = header(&request, RANGE).filter(|_| same);
    let size = download.size;
    let (status, part) = match wanted(asked, size) {
        Wanted::Whole => (StatusCode::OK, 0..size),
        Wanted::Part(part) => (StatusCode::PARTIAL_CONTENT, part),
        Wanted::Nothing => return Err(Refusal::range(size)),
    };
    let mut response = HttpResponse::build(status);
    response
        .insert_header((CONTENT_TYPE, download.grant.content_type.as_str()))
        .insert_header((
            CONTENT_DISPOSITION,
            attachment(download.grant.path.file_name()),
        ))
        .insert_header((CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"))
        .insert_header((CACHE_CONTROL, "private"))
        .insert_header((ACCEPT_RANGES, "bytes"))
        .insert_header((ETAG, etag));
    if status == StatusCode::PARTIAL_CONTENT {
        let last = part.end.saturating_sub(1);
        response.insert_header((CONTENT_RANGE, format!("bytes {}-{last}/{size}", part.start)));
    }
    let length = part.end - part.start;
    if request.method() == Method::HEAD {
        let nothing = stream::empty::<Result<_, Refusal>>();
        return Ok(response.body(SizedStream::new(length, nothing)));
    }
    let bytes = read(&app, &download, part).await?;
    Ok(response.body(SizedStream::new(length, bytes)))
}

async fn read(
    app: &App,
    download: &Download,
    part: std::ops::Range<u64>,
) -> Result<labdata_ports::files::blob::ByteStream, Refusal> {
    let bytes = download.read(&app.services, part).await?;
    Ok(bytes
        .inspect(|chunk| {
            if let Err(error) = chunk {
                tracing::warn!(%error, "a download broke off");
            }
        })
        .boxed())
}

fn header(request: &HttpRequest, name: HeaderName) -> Option<&str> {
    request.headers().get(name)?.to_str().ok()
}

/// Returns true if a list of entity tags contains this one.
fn matches(list: &str, etag: &str) -> bool {
    list.split(',')
        .map(str::trim)
        .any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == etag)
}
