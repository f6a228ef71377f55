//! `labdata sign-in`

use anyhow::Context;
use labdata_application::people::{
    first_start::{ADMINISTRATOR, ORGANIZATION},
    sessions::sign_in_link,
};
use labdata_domain::people::{invitation_email::link_with_token, session::PlainToken};

use super::{
    arguments::SignIn,
    existing::require_database,
    output::{complain, say},
};
use crate::{compose::DatabaseServer, dependencies::ServerDependencies, settings::Settings};

/// The link that opens the console signed in. The token is in the fragment, which browsers do not send.
pub(super) fn link(url: &str, token: &PlainToken) -> String {
    link_with_token(url, token.reveal())
}

/// Prints a link for a user on the configured database, which a server may be using.
pub(super) async fn sign_in(settings: &Settings, arguments: SignIn) -> anyhow::Result<()> {
    require_database(settings, "to sign in to")?;
    let database = DatabaseServer::open(settings).await?;
    let outcome = made(&database, settings, arguments).await;
    // Also after a failure, so that an embedded PostgreSQL does not run on.
    database.close().await?;
    say(&outcome?);
    Ok(())
}

async fn made(
    database: &DatabaseServer,
    settings: &Settings,
    arguments: SignIn,
) -> anyhow::Result<String> {
    let url = settings.public_url(settings.bind);
    let services = database
        .services(settings, &url, ServerDependencies::of(settings))
        .await?;
    let organization = arguments.organization.as_deref().unwrap_or(ORGANIZATION);
    let user = arguments.user.as_deref().unwrap_or(ADMINISTRATOR);
    let token = sign_in_link(&services, organization, user)
        .await
        .with_context(|| {
            format!(
                "{user} of the organization {organization:?}; `labdata api-key create` makes users"
            )
        })?;
    if settings.public_url.is_none() {
        complain(&format!(
            "the link is for a server at {url}; where it listens elsewhere, give its --bind or --public-url here, too"
        ));
    }
    Ok(link(&url, &token))
}
