//! `GET /api/v1/agent/chats`

use labdata_application::{Error, agent::chats::list_chats};

use super::ChatView;
use crate::{About, Call, Listing, Method, NoBody, Operation, PageQuery, Read, Tag};

pub(super) fn operation() -> Operation {
    About {
        name: "list_agent_chats",
        method: Method::Get,
        path: "/api/v1/agent/chats",
        tag: Tag::Agent,
        summary: "Lists the caller's chats with the agent, newest first",
        description: "By pages of `limit`; the header `Link` names the next page. Messages are part of a \
            single chat only.",
        returns: "The chats",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Read, NoBody, PageQuery>) -> Result<Listing<ChatView>, Error> {
    let page = list_chats(&call.platform.agent, &call.actor, call.query.page).await?;
    Ok(page.into())
}
