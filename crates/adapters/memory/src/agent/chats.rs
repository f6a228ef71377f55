//! Chats in memory.

use async_trait::async_trait;
use labdata_domain::{
    agent::{Attachment, Chat, ChatMessage, ChatSize, Usage},
    files::ObjectKey,
    ids::{ChatFileId, ChatId, OrganizationId, UserId},
    page::{Cursor, Page, PageRequest},
    refusal::Resource,
};
use labdata_ports::{
    PortError,
    agent::{AppendError, ChatRepository, SavedChat},
};
use time::OffsetDateTime;

use crate::{memory::fake, paging::page};

/// A stored chat.
#[derive(Clone, Debug)]
pub(crate) struct ChatRow {
    organization: OrganizationId,
    user: UserId,
    saved: SavedChat,
}

impl ChatRow {
    /// The files of the chat.
    fn files(&self) -> impl Iterator<Item = &Attachment> {
        let messages = self.saved.messages.iter();
        messages.flat_map(ChatMessage::attachments)
    }

    /// True if the object is a file of the chat.
    pub(crate) fn refers_to(&self, organization: OrganizationId, object: ObjectKey) -> bool {
        self.organization == organization && self.files().any(|file| file.object() == object)
    }

    /// Size of its files, if it is the organization's.
    pub(crate) fn file_bytes(&self, organization: OrganizationId) -> u64 {
        if self.organization == organization {
            self.files().map(|file| file.size).sum()
        } else {
            0
        }
    }

    fn belongs_to(&self, organization: OrganizationId, user: UserId) -> bool {
        self.organization == organization && self.user == user
    }
}

fake!(
    /// Chats in memory.
    pub struct InMemoryChatRepository;
);

#[async_trait]
impl ChatRepository for InMemoryChatRepository {
    async fn save(
        &self,
        organization: OrganizationId,
        user: UserId,
        chat: &Chat,
        messages: &[ChatMessage],
    ) -> Result<(), AppendError> {
        ChatSize::default().plus(messages)?;
        let mut state = self.memory.lock();
        state.require_user(organization, user)?;
        state.chats.push(ChatRow {
            organization,
            user,
            saved: SavedChat {
                chat: chat.clone(),
                messages: without_content(messages),
            },
        });
        Ok(())
    }

    async fn append(
        &self,
        organization: OrganizationId,
        user: UserId,
        id: ChatId,
        messages: &[ChatMessage],
        usage: Usage,
        now: OffsetDateTime,
    ) -> Result<Chat, AppendError> {
        let mut state = self.memory.lock();
        let mut rows = state.chats.iter_mut();
        let row = rows
            .find(|row| row.belongs_to(organization, user) && row.saved.chat.id == id)
            .ok_or(PortError::NotFound(Resource::Chat))?;
        ChatSize::default()
            .plus(&row.saved.messages)?
            .plus(messages)?;
        row.saved.messages.extend(without_content(messages));
        row.saved.chat.updated_at = now;
        row.saved.chat.usage = row.saved.chat.usage.plus(usage);
        Ok(row.saved.chat.clone())
    }

    async fn list(
        &self,
        organization: OrganizationId,
        user: UserId,
        request: PageRequest,
    ) -> Result<Page<Chat>, PortError> {
        let state = self.memory.lock();
        let chats = state.chats.iter();
        let chats = chats
            .filter(|row| row.belongs_to(organization, user))
            .map(|row| row.saved.chat.clone());
        Ok(page(chats, request, |chat| Cursor {
            at: chat.created_at,
            id: chat.id.as_uuid(),
        }))
    }

    async fn get(
        &self,
        organization: OrganizationId,
        user: UserId,
        id: ChatId,
    ) -> Result<SavedChat, PortError> {
        let state = self.memory.lock();
        let mut rows = state.chats.iter();
        rows.find(|row| row.belongs_to(organization, user) && row.saved.chat.id == id)
            .map(|row| row.saved.clone())
            .ok_or(PortError::NotFound(Resource::Chat))
    }

    async fn file(
        &self,
        organization: OrganizationId,
        user: UserId,
        chat: ChatId,
        id: ChatFileId,
    ) -> Result<Attachment, PortError> {
        let state = self.memory.lock();
        let mut rows = state.chats.iter();
        let row = rows.find(|row| row.belongs_to(organization, user) && row.saved.chat.id == chat);
        row.and_then(|row| row.files().find(|file| file.id == id).cloned())
            .ok_or(PortError::NotFound(Resource::File))
    }

    async fn delete(
        &self,
        organization: OrganizationId,
        user: UserId,
        id: ChatId,
    ) -> Result<Vec<ChatFileId>, PortError> {
        let mut state = self.memory.lock();
        let mut rows = state.chats.iter();
        let at = rows
            .position(|row| row.belongs_to(organization, user) && row.saved.chat.id == id)
            .ok_or(PortError::NotFound(Resource::Chat))?;
        let deleted = state.chats.remove(at);
        Ok(deleted.files().map(|file| file.id).collect())
    }
}

fn without_content(messages: &[ChatMessage]) -> Vec<ChatMessage> {
    let messages = messages.iter().cloned();
    messages.map(ChatMessage::without_content).collect()
}
