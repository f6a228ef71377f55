//! By which ways the caller wants notifications.

use labdata_domain::{
    notifications::{ChannelChange, Preferences, read_unsubscribe_token},
    people::{actor::Actor, run_key::GuardedAction, scope::Scope},
    refusal::Resource,
};

use crate::{Error, Services};

/// Name of the secret behind the links in e-mails.
const UNSUBSCRIBING: &str = "unsubscribing";

/// The caller's preferences.
///
/// # Errors
/// `Forbidden` without the read scope, for the key of a run and for one that is narrowed to tables.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn get_preferences(services: &Services, actor: &Actor) -> Result<Preferences, Error> {
    actor.require(Scope::Read)?;
    actor.may(GuardedAction::UsePersonalRecords)?;
    Ok(services
        .notifications
        .preferences(actor.organization, actor.user)
        .await?)
}

/// Changes the caller's preferences of messages.
///
/// # Errors
/// `Forbidden` without the write scope and for the key of a run.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn change_preferences(
    services: &Services,
    actor: &Actor,
    message: ChannelChange,
) -> Result<Preferences, Error> {
    actor.require(Scope::Write)?;
    actor.may(GuardedAction::UsePersonalRecords)?;
    Ok(services
        .notifications
        .change_preferences(actor.organization, actor.user, message)
        .await?)
}

/// Turns the e-mails of a user off, as the link in one of them permits.
///
/// # Errors
/// `NotFound` when the link is not the platform's.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn unsubscribe(services: &Services, token: &str) -> Result<(), Error> {
    // The token is the permission: a link in an e-mail works without a key.
    let secret = unsubscribing_secret(services).await?;
    let (organization, user) = read_unsubscribe_token(&secret, token)
        .ok_or_else(|| Error::not_found(Resource::Subscription))?;
    let off = ChannelChange {
        // Only e-mail, because the link came with one; the inbox stays as it is.
        email: Some(false),
        ..ChannelChange::default()
    };
    services
        .notifications
        .change_preferences(organization, user, off)
        .await?;
    Ok(())
}

/// The secret that permissions to unsubscribe are made with; the same on every server.
pub(crate) async fn unsubscribing_secret(services: &Services) -> Result<[u8; 32], Error> {
    let mut candidate = [0; 32];
    // All servers get the secret that was stored first, whichever made it.
    services.ids.fill_random(&mut candidate);
    Ok(services
        .tenancy
        .ensure_secret(UNSUBSCRIBING, &candidate)
        .await?)
}
