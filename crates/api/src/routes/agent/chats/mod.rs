//! `/api/v1/agent/chats`

pub mod delete;
pub mod file;
pub mod get;
pub mod list;

use labdata_domain::{
    agent::{Chat, ChatMessage, ChatRole},
    ids::{ChatFileId, ChatId},
};
use labdata_ports::agent::SavedChat;
use labdata_request_body::{
    fields::required,
    readers::{MaybeId, id},
    shape,
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::names;

use super::{ToolCallView, UsageView};
use crate::http::Timestamp;

shape! {
    /// The path of a chat.
    #[derive(Clone, Copy, Debug)]
    pub struct ChatPath {
        /// The chat's id
        pub chat_id: MaybeId<ChatId> = required(id()),
    }
}

shape! {
    /// The path of a file of a chat.
    #[derive(Clone, Copy, Debug)]
    pub struct ChatFilePath {
        /// The chat's id
        pub chat_id: MaybeId<ChatId> = required(id()),
        /// The file's id
        pub file_id: MaybeId<ChatFileId> = required(id()),
    }
}

names! {
    /// Author of a message.
    pub AgentMessageRole = ChatRole::ALL.map(ChatRole::as_str);
}

/// A saved conversation with the agent.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AgentChat)]
pub struct ChatView {
    /// Its id.
    id: String,
    /// The start of its first prompt.
    title: String,
    created_at: Timestamp,
    /// When it was last continued.
    updated_at: Timestamp,
    /// Tokens of its runs.
    usage: UsageView,
}

/// A chat with its messages.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AgentChatWithMessages)]
pub struct SavedChatView {
    #[serde(flatten)]
    chat: ChatView,
    /// The messages, oldest first.
    messages: Vec<MessageView>,
}

/// A message: a prompt, or one answer of the model.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AgentMessage)]
pub struct MessageView {
    /// Its author.
    #[schema(value_type = AgentMessageRole)]
    role: &'static str,
    /// The text; may be empty if the model called tools.
    content: String,
    /// The tool calls of an answer, in order.
    tool_calls: Vec<ToolCallView>,
    created_at: Timestamp,
}

impl From<Chat> for ChatView {
    fn from(chat: Chat) -> Self {
        Self {
            id: chat.id.to_string(),
            title: chat.title,
            created_at: chat.created_at.into(),
            updated_at: chat.updated_at.into(),
            usage: chat.usage.into(),
        }
    }
}

impl From<SavedChat> for SavedChatView {
    fn from(saved: SavedChat) -> Self {
        let id = saved.chat.id;
        let messages = saved.messages.into_iter();
        Self {
            chat: saved.chat.into(),
            messages: messages
                .map(|message| MessageView::of(message, id))
                .collect(),
        }
    }
}

impl MessageView {
    /// A message of that chat.
    fn of(message: ChatMessage, chat: ChatId) -> Self {
        let calls = message.tool_calls.iter();
        Self {
            role: message.role.as_str(),
            tool_calls: calls
                .map(|call| ToolCallView::of(call, Some(chat)))
                .collect(),
            content: message.content,
            created_at: message.created_at.into(),
        }
    }
}
