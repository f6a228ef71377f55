//! Lists, shows and deletes saved chats and their files.

use labdata_domain::{
    agent::{Attachment, Chat},
    files::ObjectKey,
    ids::{ChatFileId, ChatId},
    page::{Page, PageRequest},
    people::{actor::Actor, run_key::GuardedAction, scope::Scope},
    refusal::Resource,
};
use labdata_ports::{PortError, agent::SavedChat, files::blob::BlobBody};

use super::Agent;
use crate::{
    Error, Services,
    files::upload_file::remove,
    slots::{Held, Work},
};

/// The caller's chats, newest first.
///
/// # Errors
/// `Forbidden` without the read scope, for the key of a run and for one that is narrowed to tables.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn list_chats(
    agent: &Agent,
    actor: &Actor,
    page: PageRequest,
) -> Result<Page<Chat>, Error> {
    actor.require(Scope::Read)?;
    actor.may(GuardedAction::UsePersonalRecords)?;
    Ok(agent
        .chats
        .list(actor.organization, actor.user, page)
        .await?)
}

/// One of the caller's chats with its messages.
///
/// # Errors
/// `Forbidden` without the read scope, for the key of a run and for one that is narrowed to tables; `NotFound`.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn get_chat(
    services: &Services,
    agent: &Agent,
    actor: &Actor,
    id: ChatId,
) -> Result<Held<SavedChat>, Error> {
    actor.require(Scope::Read)?;
    actor.may(GuardedAction::UsePersonalRecords)?;
    // A chat has up to 16 MiB.
    let slots = services.slots.enter(Work::Result, actor).await?;
    let value = agent.chats.get(actor.organization, actor.user, id).await?;
    Ok(Held { value, slots })
}

/// A file of a chat.
pub struct ChatFile {
    /// Its name and type.
    pub attachment: Attachment,
    /// Its bytes.
    pub body: BlobBody,
}

impl std::fmt::Debug for ChatFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChatFile")
            .field("attachment", &self.attachment)
            .finish_non_exhaustive()
    }
}

/// Reads a file of one of the caller's chats.
///
/// # Errors
/// `Forbidden` without the read scope, for the key of a run and for one that is narrowed to tables; `NotFound`.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn get_chat_file(
    services: &Services,
    agent: &Agent,
    actor: &Actor,
    chat: ChatId,
    id: ChatFileId,
) -> Result<ChatFile, Error> {
    actor.require(Scope::Read)?;
    actor.may(GuardedAction::UsePersonalRecords)?;
    let (organization, user) = (actor.organization, actor.user);
    let attachment = agent.chats.file(organization, user, chat, id).await?;
    let body = services
        .blobs
        .read(organization, attachment.object(), None)
        .await;
    let body = body.map_err(|error| match error {
        // A chat that is deleted at this moment is as good as deleted before.
        PortError::NotFound(_) => Error::not_found(Resource::File),
        other => other.into(),
    })?;
    Ok(ChatFile { attachment, body })
}

/// Deletes one of the caller's chats with its files. The read scope suffices, as it does to save one.
///
/// # Errors
/// `Forbidden` without the read scope, for the key of a run and for one that is narrowed to tables; `NotFound`.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn delete_chat(
    services: &Services,
    agent: &Agent,
    actor: &Actor,
    id: ChatId,
) -> Result<(), Error> {
    actor.require(Scope::Read)?;
    actor.may(GuardedAction::UsePersonalRecords)?;
    let (organization, user) = (actor.organization, actor.user);
    let files = agent.chats.delete(organization, user, id).await?;
    for file in files {
        // After the chat: a failure here only leaves objects for the sweep.
        remove(services, actor, ObjectKey::new(file.as_uuid())).await;
    }
    Ok(())
}
