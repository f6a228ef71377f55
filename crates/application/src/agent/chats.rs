//! Lists, shows and deletes saved chats.

use labdata_domain::{
    agent::Chat,
    ids::ChatId,
    keys::{actor::Actor, scope::Scope},
    page::{Page, PageRequest},
};
use labdata_ports::agent::SavedChat;

use super::Agent;
use crate::Error;

/// The caller's chats, newest first.
///
/// # Errors
/// [`Error::Forbidden`] without the read scope.
pub async fn list_chats(
    agent: &Agent,
    actor: &Actor,
    page: PageRequest,
) -> Result<Page<Chat>, Error> {
    actor.require(Scope::Read)?;
    Ok(agent
        .chats
        .list(actor.organization, actor.user, page)
        .await?)
}

/// One of the caller's chats with its messages.
///
/// # Errors
/// [`Error::Forbidden`] without the read scope; [`Error::NotFound`].
pub async fn get_chat(agent: &Agent, actor: &Actor, id: ChatId) -> Result<SavedChat, Error> {
    actor.require(Scope::Read)?;
    Ok(agent.chats.get(actor.organization, actor.user, id).await?)
}

/// Deletes one of the caller's chats. The read scope suffices, as it does to save one.
///
/// # Errors
/// [`Error::Forbidden`] without the read scope; [`Error::NotFound`].
pub async fn delete_chat(agent: &Agent, actor: &Actor, id: ChatId) -> Result<(), Error> {
    actor.require(Scope::Read)?;
    Ok(agent
        .chats
        .delete(actor.organization, actor.user, id)
        .await?)
}
