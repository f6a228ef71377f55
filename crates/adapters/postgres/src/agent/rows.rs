//! Rows of chats.

use diesel::prelude::*;
use labdata_domain::{
    agent::{
        Attachment, AttachmentType, Chat, ChatMessage, ChatRole, CompletedCall, ToolCall,
        ToolInput, ToolOutput, Usage,
    },
    ids::{ChatFileId, ChatId, OrganizationId},
};
use labdata_ports::PortError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    database::errors::corrupt,
    schema::{agent_chat, agent_chat_file, agent_message},
};

/// A chat as it is read.
#[derive(Queryable, Selectable)]
#[diesel(table_name = agent_chat)]
pub(super) struct ChatRow {
    id: Uuid,
    title: String,
    created_at: OffsetDateTime,
    updated_at: OffsetDateTime,
    #[diesel(embed)]
    tokens: TokensRow,
}

impl TryFrom<ChatRow> for Chat {
    type Error = PortError;

    fn try_from(row: ChatRow) -> Result<Self, PortError> {
        let id = ChatId::new(row.id);
        Ok(Self {
            id,
            title: row.title,
            created_at: row.created_at,
            updated_at: row.updated_at,
            usage: row.tokens.read(id)?,
        })
    }
}

/// Tokens of the runs of a chat.
#[derive(Clone, Copy, Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = agent_chat)]
#[expect(clippy::struct_field_names, reason = "the names of columns")]
pub(super) struct TokensRow {
    input_tokens: Option<i64>,
    output_tokens: Option<i64>,
    total_tokens: Option<i64>,
}

impl TokensRow {
    pub(super) fn of(usage: Usage) -> Result<Self, PortError> {
        let stored = |tokens: Option<u64>| tokens.map(number).transpose();
        Ok(Self {
            input_tokens: stored(usage.input_tokens)?,
            output_tokens: stored(usage.output_tokens)?,
            total_tokens: stored(usage.total_tokens)?,
        })
    }

    pub(super) fn read(self, chat: ChatId) -> Result<Usage, PortError> {
        let read = |column, tokens: Option<i64>| {
            let tokens = tokens.map(u64::try_from).transpose();
            tokens.map_err(|_| corrupt("agent_chat", column, chat))
        };
        Ok(Usage {
            input_tokens: read("input_tokens", self.input_tokens)?,
            output_tokens: read("output_tokens", self.output_tokens)?,
            total_tokens: read("total_tokens", self.total_tokens)?,
        })
    }
}

/// A file as it is read.
#[derive(Queryable, Selectable)]
#[diesel(table_name = agent_chat_file)]
pub(super) struct FileRow {
    id: Uuid,
    name: String,
    media_type: String,
    size_bytes: i64,
}

/// A file as it is stored.
#[derive(Insertable)]
#[diesel(table_name = agent_chat_file)]
pub(super) struct NewFileRow<'f> {
    organization_id: Uuid,
    id: Uuid,
    chat_id: Uuid,
    name: &'f str,
    media_type: &'static str,
    size_bytes: i64,
    created_at: OffsetDateTime,
}

impl<'f> NewFileRow<'f> {
    pub(super) fn of(
        organization: OrganizationId,
        chat: ChatId,
        file: &'f Attachment,
        now: OffsetDateTime,
    ) -> Result<Self, PortError> {
        Ok(Self {
            organization_id: organization.as_uuid(),
            id: file.id.as_uuid(),
            chat_id: chat.as_uuid(),
            name: &file.name,
            media_type: file.kind.media_type(),
            size_bytes: number(file.size)?,
            created_at: now,
        })
    }
}

impl TryFrom<FileRow> for Attachment {
    type Error = PortError;

    fn try_from(row: FileRow) -> Result<Self, PortError> {
        let unreadable = |column| corrupt("agent_chat_file", column, row.id);
        Ok(Self {
            id: ChatFileId::new(row.id),
            kind: AttachmentType::from_media_type(&row.media_type)
                .ok_or_else(|| unreadable("media_type"))?,
            size: u64::try_from(row.size_bytes).map_err(|_| unreadable("size_bytes"))?,
            name: row.name,
            // The bytes are an object of the storage, under the same id.
            content: None,
        })
    }
}

/// A message as it is read.
#[derive(Queryable, Selectable)]
#[diesel(table_name = agent_message)]
pub(super) struct MessageRow {
    chat_id: Uuid,
    role: String,
    content: String,
    tool_calls: Value,
    created_at: OffsetDateTime,
}

/// A message as it is stored.
#[derive(Insertable)]
#[diesel(table_name = agent_message)]
pub(super) struct NewMessageRow<'m> {
    organization_id: Uuid,
    chat_id: Uuid,
    position: i64,
    role: &'static str,
    content: &'m str,
    tool_calls: Value,
    created_at: OffsetDateTime,
}

/// Element of the column `tool_calls`.
#[derive(Serialize, Deserialize)]
struct CallJson {
    id: String,
    name: String,
    /// Arguments that are an object.
    input: Option<Map<String, Value>>,
    /// Any other arguments.
    invalid_input: Option<String>,
    provider_data: Option<Value>,
    output: String,
    output_bytes: u64,
    is_error: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    attachments: Vec<AttachmentJson>,
}

/// Attachment of a tool output; the file of the same id has its content.
#[derive(Serialize, Deserialize)]
struct AttachmentJson {
    id: Uuid,
    name: String,
    media_type: String,
    size: u64,
}

impl From<&Attachment> for AttachmentJson {
    fn from(attachment: &Attachment) -> Self {
        Self {
            id: attachment.id.as_uuid(),
            name: attachment.name.clone(),
            media_type: attachment.kind.media_type().to_owned(),
            size: attachment.size,
        }
    }
}

impl AttachmentJson {
    fn read(self) -> Option<Attachment> {
        Some(Attachment {
            id: ChatFileId::new(self.id),
            name: self.name,
            kind: AttachmentType::from_media_type(&self.media_type)?,
            size: self.size,
            content: None,
        })
    }
}

impl<'m> NewMessageRow<'m> {
    pub(super) fn of(
        organization: OrganizationId,
        chat: ChatId,
        position: i64,
        message: &'m ChatMessage,
    ) -> Result<Self, PortError> {
        // One document, because calls are read with their message only.
        let calls: Vec<CallJson> = message.tool_calls.iter().map(CallJson::from).collect();
        Ok(Self {
            organization_id: organization.as_uuid(),
            chat_id: chat.as_uuid(),
            position,
            role: message.role.as_str(),
            content: &message.content,
            tool_calls: serde_json::to_value(calls)
                .map_err(|error| PortError::Internal(error.to_string()))?,
            created_at: message.created_at,
        })
    }
}

impl TryFrom<MessageRow> for ChatMessage {
    type Error = PortError;

    fn try_from(row: MessageRow) -> Result<Self, PortError> {
        let unreadable = |column| corrupt("agent_message", column, row.chat_id);
        let calls: Vec<CallJson> =
            serde_json::from_value(row.tool_calls).map_err(|_| unreadable("tool_calls"))?;
        let calls = calls
            .into_iter()
            .map(|call| call.read().ok_or_else(|| unreadable("tool_calls")));
        Ok(Self {
            role: ChatRole::from_name(&row.role).ok_or_else(|| unreadable("role"))?,
            content: row.content,
            tool_calls: calls.collect::<Result<_, _>>()?,
            created_at: row.created_at,
        })
    }
}

impl From<&CompletedCall> for CallJson {
    fn from(completed: &CompletedCall) -> Self {
        let CompletedCall { call, output } = completed;
        let (input, invalid_input) = match &call.input {
            ToolInput::Object(object) => (Some(object.clone()), None),
            ToolInput::Invalid(text) => (None, Some(text.clone())),
        };
        Self {
            id: call.id.clone(),
            name: call.name.clone(),
            input,
            invalid_input,
            provider_data: call.provider_data.clone(),
            output: output.text.clone(),
            output_bytes: output.bytes,
            is_error: output.is_error,
            attachments: output
                .attachments
                .iter()
                .map(AttachmentJson::from)
                .collect(),
        }
    }
}

impl CallJson {
    fn read(self) -> Option<CompletedCall> {
        let input = match (self.input, self.invalid_input) {
            (Some(object), None) => ToolInput::Object(object),
            (None, Some(text)) => ToolInput::Invalid(text),
            // Both or neither: this program has not written the row.
            _ => return None,
        };
        let attachments = self.attachments.into_iter().map(AttachmentJson::read);
        Some(CompletedCall {
            call: ToolCall {
                id: self.id,
                name: self.name,
                input,
                provider_data: self.provider_data,
            },
            output: ToolOutput {
                text: self.output,
                bytes: self.output_bytes,
                is_error: self.is_error,
                attachments: attachments.collect::<Option<_>>()?,
            },
        })
    }
}

/// A number that the database stores as `bigint`.
pub(super) fn number(number: u64) -> Result<i64, PortError> {
    i64::try_from(number).map_err(|error| PortError::Internal(error.to_string()))
}
