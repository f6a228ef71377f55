//! `GET /api/v1/agent/chats/{chat_id}/files/{file_id}`

use actix_web::{
    HttpResponse,
    body::SizedStream,
    http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE},
};
use futures::TryStreamExt;
use labdata_application::agent::chats::get_chat_file;
use labdata_domain::refusal::Resource;
use labdata_operations::agent::chats::file::ChatFilePath;

use crate::http::{ApiResult, Call, NoBody, OrNotFound, Read};

/// Sends a figure.
pub async fn handle(call: Call<Read, NoBody, (), ChatFilePath>) -> ApiResult<HttpResponse> {
    let chat = call.path.chat_id.or_not_found(Resource::Chat)?;
    let file = call.path.file_id.or_not_found(Resource::File)?;
    let agent = &call.app.platform.agent;
    let file = get_chat_file(call.services(), agent, &call.actor, chat, file).await?;
    let bytes = file
        .body
        .bytes
        .inspect_err(|error| tracing::warn!(%error, "a download broke off"));
    Ok(HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, file.attachment.kind.media_type()))
        .insert_header((CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"))
        // A file never changes; whether the caller may read it does.
        .insert_header((CACHE_CONTROL, "private, no-cache"))
        .body(SizedStream::new(file.body.size, bytes)))
}
