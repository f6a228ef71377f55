//! `/api/v1/agent/chats`

use labdata_domain::{
    agent::{Chat, ChatRole},
    ids::ChatId,
};
use labdata_request_body::{
    Timestamp,
    fields::required,
    names, output,
    readers::{MaybeId, id},
    shape,
};

use super::{ToolCallView, UsageView};
use crate::Operation;

pub mod delete;
pub mod file;
pub mod get;
pub mod list;

shape! {
    /// The path of a chat.
    #[derive(Clone, Copy, Debug)]
    pub struct ChatPath {
        /// The chat's id
        chat_id: MaybeId<ChatId> = required(id()),
    }
}

names! {
    /// Author of a message.
    pub AgentMessageRole = ChatRole::ALL.map(ChatRole::as_str);
}

output! {
    /// A saved conversation with the agent.
    #[derive(Debug)]
    pub struct ChatView as "AgentChat" from chat: Chat {
        /// Its id.
        id: ChatId = chat.id,
        /// The start of its first prompt.
        title: String = chat.title,
        created_at: Timestamp = chat.created_at.into(),
        /// When it was last continued.
        updated_at: Timestamp = chat.updated_at.into(),
        /// Tokens of its runs.
        usage: UsageView = chat.usage.into(),
    }
}

output! {
    /// A message: a prompt, or one response of the model.
    #[derive(Debug)]
    pub struct MessageView as "AgentMessage" {
        /// Its author.
        role: AgentMessageRole,
        /// The text; may be empty if the model called tools.
        content: String,
        /// The tool calls of a response, in order.
        tool_calls: Vec<ToolCallView>,
        created_at: Timestamp,
    }
}

pub(super) fn operations() -> Vec<Operation> {
    vec![
        list::operation(),
        get::operation(),
        delete::operation(),
        file::operation(),
    ]
}
