//! `DELETE /api/v1/agent/chats/{chat_id}`

use labdata_application::{Error, agent::chats::delete_chat};
use labdata_domain::refusal::Resource;

use super::ChatPath;
use crate::{About, Call, Method, NoBody, NoContent, Operation, OrNotFound, Read, Tag};

pub(super) fn operation() -> Operation {
    About {
        name: "delete_agent_chat",
        method: Method::Delete,
        path: "/api/v1/agent/chats/{chat_id}",
        tag: Tag::Agent,
        summary: "Deletes one of the caller's chats with its files",
        description: "What its runs wrote stays.",
        returns: "It is deleted",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Read, NoBody, (), ChatPath>) -> Result<NoContent, Error> {
    let id = call.path.chat_id.or_not_found(Resource::Chat)?;
    delete_chat(&call.services, &call.platform.agent, &call.actor, id).await?;
    Ok(NoContent)
}
