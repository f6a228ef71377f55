//! Saved chats.

use async_trait::async_trait;
use labdata_domain::{
    agent::{Attachment, Chat, ChatFull, ChatMessage, Usage},
    ids::{ChatFileId, ChatId, OrganizationId, UserId},
    page::{Page, PageRequest},
};
use time::OffsetDateTime;

use crate::PortError;

/// A chat with its messages, oldest first.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedChat {
    /// The chat.
    pub chat: Chat,
    /// Its messages.
    pub messages: Vec<ChatMessage>,
}

/// Why messages were not added to a chat.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// It has no room for them; nothing was added.
    #[error(transparent)]
    Full(#[from] ChatFull),
    /// The port failed.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// Repository of chats. A chat is its user's: for another user of the same organization it does not
/// exist.
#[async_trait]
pub trait ChatRepository: Send + Sync {
    /// Stores a new chat with its first messages, and the records of their attachments as its files. The
    /// content of attachments is not stored.
    ///
    /// # Errors
    /// [`AppendError::Full`] by [`ChatSize::plus`](labdata_domain::agent::ChatSize::plus);
    /// [`PortError::NotFound`] if the organization does not have the user.
    async fn save(
        &self,
        organization: OrganizationId,
        user: UserId,
        chat: &Chat,
        messages: &[ChatMessage],
    ) -> Result<(), AppendError>;

    /// Adds messages at the end of a chat as [`ChatRepository::save`] does, all of them or none, and the
    /// usage of their run to that of the chat; returns the chat, updated at that time. Messages of
    /// racing calls MUST NOT mix.
    ///
    /// # Errors
    /// [`AppendError::Full`] by [`ChatSize::plus`](labdata_domain::agent::ChatSize::plus);
    /// [`PortError::NotFound`].
    async fn append(
        &self,
        organization: OrganizationId,
        user: UserId,
        id: ChatId,
        messages: &[ChatMessage],
        usage: Usage,
        now: OffsetDateTime,
    ) -> Result<Chat, AppendError>;

    /// The user's chats, newest first by their creation.
    async fn list(
        &self,
        organization: OrganizationId,
        user: UserId,
        page: PageRequest,
    ) -> Result<Page<Chat>, PortError>;

    /// One of the user's chats with its messages, whose attachments have no content.
    ///
    /// # Errors
    /// [`PortError::NotFound`].
    async fn get(
        &self,
        organization: OrganizationId,
        user: UserId,
        id: ChatId,
    ) -> Result<SavedChat, PortError>;

    /// A file of one of the user's chats, without content.
    ///
    /// # Errors
    /// [`PortError::NotFound`].
    async fn file(
        &self,
        organization: OrganizationId,
        user: UserId,
        chat: ChatId,
        id: ChatFileId,
    ) -> Result<Attachment, PortError>;

    /// Deletes a chat with its messages and the records of its files; returns these files.
    ///
    /// # Errors
    /// [`PortError::NotFound`].
    async fn delete(
        &self,
        organization: OrganizationId,
        user: UserId,
        id: ChatId,
    ) -> Result<Vec<ChatFileId>, PortError>;
}
