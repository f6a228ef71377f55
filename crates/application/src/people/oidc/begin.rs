//! Begins a sign-in with the identity provider.

use std::fmt;

use labdata_domain::people::oidc::{ReturnPath, SignInAttempt};

use super::{of_provider, secret, service};
use crate::{Error, Services};

/// A sign-in that the browser continues at the provider.
pub struct BegunSignIn {
    /// URL of the provider.
    pub url: String,
    /// Value of the cookie by which the browser proves that it began.
    pub cookie: String,
}

impl fmt::Debug for BegunSignIn {
    /// Without URL and cookie, which let who has both sign in.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BegunSignIn").finish_non_exhaustive()
    }
}

/// Begins a sign-in that returns to that path. Nothing is stored: anybody may begin any number of them.
///
/// # Errors
/// `NotFound` without a provider; `Unavailable` when it does not respond.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn begin_oidc(
    services: &Services,
    return_to: ReturnPath,
    redirect_uri: &str,
) -> Result<BegunSignIn, Error> {
    let service = service(services)?;
    let mut bytes = [0; 32];
    services.ids.fill_random(&mut bytes);
    let attempt = SignInAttempt::begin(bytes, return_to, services.clock.now());
    let url = service
        .provider
        .authorization_url(&attempt, redirect_uri)
        .await;
    Ok(BegunSignIn {
        url: url.map_err(of_provider)?,
        cookie: attempt.seal(&secret(services).await?),
    })
}
