//! `GET /api/v1/audit`

use actix_web::{
    HttpResponse,
    http::header::{ACCEPT, CACHE_CONTROL},
    web::Bytes,
};
use labdata_application::{
    Error,
    audit::{
        list_audit::list_audit,
        stream_audit::{AuditStream, stream_audit},
    },
};
use labdata_limits::sending::while_read;
use labdata_operations::{
    JSON_LINES, Listing, Respond as _,
    audit::{AuditEntryView, list::AuditQuery},
};

use crate::http::{Admin, ApiResult, Call, NoBody, json_line::json_line, response::respond};

/// Sends a page of the audit log, or all of it.
pub async fn handle(call: Call<Admin, NoBody, AuditQuery>) -> ApiResult<HttpResponse> {
    let accept = call.request.headers().get(ACCEPT);
    let accept = accept.and_then(|accept| accept.to_str().ok());
    let is_whole = accept.is_some_and(|accept| accept.contains(JSON_LINES));
    let Some(filter) = call.query.filter() else {
        return Ok(respond(
            &call.request,
            Listing::<AuditEntryView>::empty().reply()?,
        ));
    };
    if !is_whole {
        let page = list_audit(call.services(), &call.actor, &filter, call.query.page()).await?;
        return Ok(respond(
            &call.request,
            Listing::<AuditEntryView>::from(page).reply()?,
        ));
    }
    let stream = stream_audit(call.services(), &call.actor, filter).await?;
    let services = call.services().clone();
    let lines = while_read(stream, async move |mut stream: AuditStream| {
        let entries = stream.next(&services).await.inspect_err(|error| {
            tracing::warn!(%error, "the audit log was not read to its end");
        })?;
        let mut lines = Vec::new();
        for entry in entries {
            lines.extend(json_line(&AuditEntryView::from(entry))?.bytes());
            lines.push(b'\n');
        }
        Ok::<_, Error>((!lines.is_empty()).then_some((Bytes::from(lines), stream)))
    });
    Ok(HttpResponse::Ok()
        .insert_header((CACHE_CONTROL, "no-store"))
        .content_type(JSON_LINES)
        .streaming(lines))
}
