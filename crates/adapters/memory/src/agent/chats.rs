//! Chats in memory.

use async_trait::async_trait;
use labdata_domain::{
    agent::{Chat, ChatMessage, ChatSize, Usage},
    ids::{ChatId, OrganizationId, UserId},
    page::{Cursor, Page, PageRequest},
};
use labdata_ports::{
    PortError,
    agent::{AppendError, ChatRepository, SavedChat},
};
use time::OffsetDateTime;

use crate::{Memory, paging::page};

/// A stored chat.
#[derive(Clone, Debug)]
pub(crate) struct ChatRow {
    organization: OrganizationId,
    user: UserId,
    saved: SavedChat,
}

impl ChatRow {
    fn belongs_to(&self, organization: OrganizationId, user: UserId) -> bool {
        self.organization == organization && self.user == user
    }
}

/// Chats in memory.
#[derive(Clone, Debug)]
pub struct InMemoryChatRepository {
    memory: Memory,
}

impl InMemoryChatRepository {
    /// The repository over that store.
    #[must_use]
    pub fn new(memory: &Memory) -> Self {
        Self {
            memory: memory.clone(),
        }
    }
}

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
                messages: messages.to_vec(),
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
            .ok_or(PortError::NotFound("chat"))?;
        ChatSize::default()
            .plus(&row.saved.messages)?
            .plus(messages)?;
        row.saved.messages.extend_from_slice(messages);
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
            .ok_or(PortError::NotFound("chat"))
    }

    async fn delete(
        &self,
        organization: OrganizationId,
        user: UserId,
        id: ChatId,
    ) -> Result<(), PortError> {
        let mut state = self.memory.lock();
        let before = state.chats.len();
        state
            .chats
            .retain(|row| !row.belongs_to(organization, user) || row.saved.chat.id != id);
        if state.chats.len() == before {
            return Err(PortError::NotFound("chat"));
        }
        Ok(())
    }
}
