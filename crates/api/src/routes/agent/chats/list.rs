//! `GET /api/v1/agent/chats`

use labdata_application::agent::chats::list_chats;

use super::ChatView;
use crate::http::{ApiResult, Call, Listing, NoBody, PageQuery, Read};

/// Lists the caller's chats with the agent, newest first
///
/// By pages of `limit`; the header `Link` names the next page. Messages are part of a single chat
/// only.
#[utoipa::path(
    get,
    path = "/api/v1/agent/chats",
    operation_id = "list_agent_chats",
    tag = "agent",
    responses((status = 200, description = "The chats", body = Vec<ChatView>))
)]
pub async fn handle(call: Call<Read, NoBody, PageQuery>) -> ApiResult<Listing<ChatView>> {
    let page = list_chats(&call.app.agent, &call.actor, call.query.page).await?;
    Ok(Listing::of(page, Into::into))
}
