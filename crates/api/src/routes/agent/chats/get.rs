//! `GET /api/v1/agent/chats/{chat_id}`

use actix_web::web::Json;
use labdata_application::agent::chats::get_chat;
use labdata_application::slots::Work;
use labdata_domain::refusal::Resource;

use super::{ChatPath, SavedChatView};
use crate::http::{ApiResult, Call, NoBody, OrNotFound, Read};

/// Reads one of the caller's chats with its messages
///
/// Messages are in the order in which they were written, with the tool calls of each.
#[utoipa::path(
    get,
    path = "/api/v1/agent/chats/{chat_id}",
    operation_id = "get_agent_chat",
    tag = "agent",
    responses((status = 200, description = "The chat", body = SavedChatView))
)]
pub async fn handle(call: Call<Read, NoBody, (), ChatPath>) -> ApiResult<Json<SavedChatView>> {
    let id = call.path.chat_id.or_not_found(Resource::Chat)?;
    // A chat has up to 16 MiB.
    let _slot = call
        .app
        .ports
        .slots
        .enter(Work::Result, call.actor.organization)
        .await?;
    let saved = get_chat(&call.app.agent, &call.actor, id).await?;
    Ok(Json(saved.into()))
}
