//! `GET /api/v1/agent/chats/{chat_id}`

use labdata_application::{Error, agent::chats::get_chat};
use labdata_domain::refusal::Resource;
use labdata_ports::agent::SavedChat;
use labdata_request_body::output;

use super::{ChatPath, ChatView, MessageView};
use crate::{
    About, Call, Counted, Method, NoBody, Operation, OrNotFound, Read, Tag, agent::ToolCallView,
};

output! {
    /// A chat with its messages.
    #[derive(Debug)]
    pub struct SavedChatView as "AgentChatWithMessages" {
        #[flatten]
        chat: ChatView,
        /// The messages, oldest first.
        messages: Vec<MessageView>,
    }
}

pub(super) fn operation() -> Operation {
    About {
        name: "get_agent_chat",
        method: Method::Get,
        path: "/api/v1/agent/chats/{chat_id}",
        tag: Tag::Agent,
        summary: "Reads one of the caller's chats with its messages",
        description: "Messages are in the order in which they were written, with the tool calls of each.",
        returns: "The chat",
        refusals: &[],
    }
    .runs(run)
}

async fn run(call: Call<Read, NoBody, (), ChatPath>) -> Result<Counted<SavedChatView>, Error> {
    let id = call.path.chat_id.or_not_found(Resource::Chat)?;
    let saved = get_chat(&call.services, &call.platform.agent, &call.actor, id).await?;
    Ok(Counted::of(saved, view))
}

fn view(SavedChat { chat, messages }: SavedChat) -> SavedChatView {
    let id = chat.id;
    let messages = messages.into_iter().map(|message| {
        let calls = message.tool_calls.iter();
        MessageView {
            role: message.role.as_str().into(),
            tool_calls: calls.map(|call| ToolCallView::of(call, Some(id))).collect(),
            content: message.content,
            created_at: message.created_at.into(),
        }
    });
    SavedChatView {
        messages: messages.collect(),
        chat: chat.into(),
    }
}
