//! `DELETE /api/v1/agent/chats/{chat_id}`

use labdata_application::agent::chats::delete_chat;
use labdata_domain::refusal::Resource;

use super::ChatPath;
use crate::http::{ApiResult, Call, NoBody, NoContent, OrNotFound, Read};

/// Deletes one of the caller's chats with its files
///
/// What its runs wrote stays.
#[utoipa::path(
    delete,
    path = "/api/v1/agent/chats/{chat_id}",
    operation_id = "delete_agent_chat",
    tag = "agent",
    responses((status = 204, description = "It is deleted"))
)]
pub async fn handle(call: Call<Read, NoBody, (), ChatPath>) -> ApiResult<NoContent> {
    let id = call.path.chat_id.or_not_found(Resource::Chat)?;
    delete_chat(call.ports(), &call.app.agent, &call.actor, id).await?;
    Ok(NoContent)
}
