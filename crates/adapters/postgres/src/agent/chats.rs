//! Chats.

use async_trait::async_trait;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use labdata_domain::{
    agent::{Attachment, Chat, ChatFull, ChatMessage, ChatSize, Usage},
    ids::{ChatFileId, ChatId, OrganizationId, UserId},
    page::{Cursor, Page, PageRequest},
    refusal::Resource,
};
use labdata_ports::{
    PortError,
    agent::{AppendError, ChatRepository, SavedChat},
};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    agent::rows::{ChatRow, FileRow, MessageRow, NewFileRow, NewMessageRow, TokensRow, number},
    database::{
        errors::{Fault, corrupt, port_error, transacted},
        paging::page_of,
        pool::{Connection, Database},
    },
    schema::{agent_chat, agent_chat_file, agent_message},
};

/// Number of messages that one statement inserts; each has seven values.
const MESSAGES_PER_INSERT: usize = 500;

/// Chats in PostgreSQL.
#[derive(Clone, Debug)]
pub struct PgChatRepository {
    database: Database,
}

impl PgChatRepository {
    /// The repository over that database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database }
    }
}

async fn save(
    connection: &mut Connection,
    organization: OrganizationId,
    user: UserId,
    chat: &Chat,
    messages: &[ChatMessage],
    size: ChatSize,
) -> Result<(), Fault> {
    diesel::insert_into(agent_chat::table)
        .values((
            agent_chat::id.eq(chat.id.as_uuid()),
            agent_chat::organization_id.eq(organization.as_uuid()),
            agent_chat::user_id.eq(user.as_uuid()),
            agent_chat::title.eq(&chat.title),
            agent_chat::message_count.eq(number(size.messages)?),
            agent_chat::size_bytes.eq(number(size.bytes)?),
            agent_chat::created_at.eq(chat.created_at),
            agent_chat::updated_at.eq(chat.updated_at),
            TokensRow::of(chat.usage)?,
        ))
        .execute(connection)
        .await
        .map_err(|error| {
            Fault::from(error).on_violation("agent_chat_user_fkey", || {
                PortError::NotFound(Resource::User)
            })
        })?;
    insert(connection, organization, chat.id, messages, 0).await
}

async fn insert(
    connection: &mut Connection,
    organization: OrganizationId,
    chat: ChatId,
    messages: &[ChatMessage],
    first: i64,
) -> Result<(), Fault> {
    let rows = messages.iter().zip(first..);
    let rows = rows
        .map(|(message, position)| NewMessageRow::of(organization, chat, position, message))
        .collect::<Result<Vec<_>, _>>()?;
    // A statement of PostgreSQL takes at most 65,535 parameters.
    for rows in rows.chunks(MESSAGES_PER_INSERT) {
        diesel::insert_into(agent_message::table)
            .values(rows)
            .execute(connection)
            .await?;
    }
    for message in messages {
        let files = message
            .attachments()
            .map(|file| NewFileRow::of(organization, chat, file, message.created_at))
            .collect::<Result<Vec<_>, _>>()?;
        for files in files.chunks(MESSAGES_PER_INSERT) {
            diesel::insert_into(agent_chat_file::table)
                .values(files)
                .execute(connection)
                .await?;
        }
    }
    Ok(())
}

async fn append(
    connection: &mut Connection,
    organization: OrganizationId,
    user: UserId,
    id: ChatId,
    messages: &[ChatMessage],
    usage: Usage,
    now: OffsetDateTime,
) -> Result<Result<Chat, ChatFull>, Fault> {
    let stored: Option<(i64, i64, TokensRow)> = agent_chat::table
        .find(id.as_uuid())
        .filter(agent_chat::organization_id.eq(organization.as_uuid()))
        .filter(agent_chat::user_id.eq(user.as_uuid()))
        .select((
            agent_chat::message_count,
            agent_chat::size_bytes,
            TokensRow::as_select(),
        ))
        // Positions and sizes continue from the stored ones, so appends follow each other.
        .for_update()
        .first(connection)
        .await
        .optional()?;
    let (first, bytes, tokens) = stored.ok_or(PortError::NotFound(Resource::Chat))?;
    // Under the chat's lock: no other run adds a file until the sum is judged.
    let files: Vec<i64> = agent_chat_file::table
        .filter(agent_chat_file::organization_id.eq(organization.as_uuid()))
        .filter(agent_chat_file::chat_id.eq(id.as_uuid()))
        .select(agent_chat_file::size_bytes)
        .load(connection)
        .await?;
    let unreadable = |column| corrupt("agent_chat", column, id);
    let size = ChatSize {
        messages: u64::try_from(first).map_err(|_| unreadable("message_count"))?,
        bytes: u64::try_from(bytes).map_err(|_| unreadable("size_bytes"))?,
        file_bytes: u64::try_from(files.iter().sum::<i64>())
            .map_err(|_| corrupt("agent_chat_file", "size_bytes", id))?,
    };
    let size = match size.plus(messages) {
        Ok(size) => size,
        Err(full) => return Ok(Err(full)),
    };
    insert(connection, organization, id, messages, first).await?;
    let row: ChatRow = diesel::update(agent_chat::table)
        .filter(agent_chat::id.eq(id.as_uuid()))
        .filter(agent_chat::organization_id.eq(organization.as_uuid()))
        .set((
            agent_chat::message_count.eq(number(size.messages)?),
            agent_chat::size_bytes.eq(number(size.bytes)?),
            agent_chat::updated_at.eq(now),
            TokensRow::of(tokens.read(id)?.plus(usage))?,
        ))
        .returning(ChatRow::as_returning())
        .get_result(connection)
        .await?;
    Ok(Ok(row.try_into()?))
}

async fn delete(
    connection: &mut Connection,
    organization: OrganizationId,
    user: UserId,
    id: ChatId,
) -> Result<Vec<ChatFileId>, Fault> {
    // Locked, so that no run adds a file in between.
    let found: Option<Uuid> = agent_chat::table
        .find(id.as_uuid())
        .filter(agent_chat::organization_id.eq(organization.as_uuid()))
        .filter(agent_chat::user_id.eq(user.as_uuid()))
        .select(agent_chat::id)
        .for_update()
        .first(connection)
        .await
        .optional()?;
    found.ok_or(PortError::NotFound(Resource::Chat))?;
    // A cascade from the chat would not return the ids, which name the objects to delete.
    let files: Vec<Uuid> = diesel::delete(agent_chat_file::table)
        .filter(agent_chat_file::organization_id.eq(organization.as_uuid()))
        .filter(agent_chat_file::chat_id.eq(id.as_uuid()))
        .returning(agent_chat_file::id)
        .get_results(connection)
        .await?;
    diesel::delete(agent_chat::table)
        .filter(agent_chat::id.eq(id.as_uuid()))
        .filter(agent_chat::organization_id.eq(organization.as_uuid()))
        .execute(connection)
        .await?;
    Ok(files.into_iter().map(ChatFileId::new).collect())
}

#[async_trait]
impl ChatRepository for PgChatRepository {
    async fn save(
        &self,
        organization: OrganizationId,
        user: UserId,
        chat: &Chat,
        messages: &[ChatMessage],
    ) -> Result<(), AppendError> {
        let size = ChatSize::default().plus(messages)?;
        let saved = transacted!(
            self.database.of(organization),
            connection => save(connection, organization, user, chat, messages, size)
        );
        Ok(saved.map_err(PortError::from)?)
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
        let appended = transacted!(
            self.database.of(organization),
            connection => append(connection, organization, user, id, messages, usage, now)
        );
        Ok(appended.map_err(PortError::from)??)
    }

    async fn list(
        &self,
        organization: OrganizationId,
        user: UserId,
        page: PageRequest,
    ) -> Result<Page<Chat>, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let query = agent_chat::table
            .filter(agent_chat::organization_id.eq(organization.as_uuid()))
            .filter(agent_chat::user_id.eq(user.as_uuid()))
            .select(ChatRow::as_select())
            .into_boxed();
        let rows: Vec<ChatRow> = page_of!(query, page, agent_chat::created_at, agent_chat::id)
            .load(&mut connection)
            .await
            .map_err(port_error)?;
        let chats = rows.into_iter().map(Chat::try_from);
        let chats = chats.collect::<Result<_, _>>()?;
        Ok(Page::from_overfetched(chats, page.limit, |chat| Cursor {
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
        let mut connection = self.database.of(organization).connection().await?;
        let row: Option<ChatRow> = agent_chat::table
            .find(id.as_uuid())
            .filter(agent_chat::organization_id.eq(organization.as_uuid()))
            .filter(agent_chat::user_id.eq(user.as_uuid()))
            .select(ChatRow::as_select())
            .first(&mut connection)
            .await
            .optional()
            .map_err(port_error)?;
        let chat = row.ok_or(PortError::NotFound(Resource::Chat))?.try_into()?;
        // Without a transaction: at worst a run that ends in between adds messages that the sums of
        // the chat above do not include yet.
        let rows: Vec<MessageRow> = agent_message::table
            .filter(agent_message::organization_id.eq(organization.as_uuid()))
            .filter(agent_message::chat_id.eq(id.as_uuid()))
            .select(MessageRow::as_select())
            // By position: a clock that is set back must not reorder a conversation.
            .order(agent_message::position)
            .load(&mut connection)
            .await
            .map_err(port_error)?;
        let messages = rows.into_iter().map(ChatMessage::try_from);
        Ok(SavedChat {
            chat,
            messages: messages.collect::<Result<_, _>>()?,
        })
    }

    async fn file(
        &self,
        organization: OrganizationId,
        user: UserId,
        chat: ChatId,
        id: ChatFileId,
    ) -> Result<Attachment, PortError> {
        let mut connection = self.database.of(organization).connection().await?;
        let of_user = agent_chat::table
            .filter(agent_chat::organization_id.eq(organization.as_uuid()))
            .filter(agent_chat::user_id.eq(user.as_uuid()))
            .filter(agent_chat::id.eq(chat.as_uuid()))
            .select(agent_chat::id);
        let row: Option<FileRow> = agent_chat_file::table
            .find((organization.as_uuid(), id.as_uuid()))
            // Through the chat: a file does not record its user.
            .filter(agent_chat_file::chat_id.eq_any(of_user))
            .select(FileRow::as_select())
            .first(&mut connection)
            .await
            .optional()
            .map_err(port_error)?;
        row.ok_or(PortError::NotFound(Resource::File))?.try_into()
    }

    async fn delete(
        &self,
        organization: OrganizationId,
        user: UserId,
        id: ChatId,
    ) -> Result<Vec<ChatFileId>, PortError> {
        let deleted = transacted!(
            self.database.of(organization),
            connection => delete(connection, organization, user, id)
        );
        Ok(deleted.map_err(PortError::from)?)
    }
}
