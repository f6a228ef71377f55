//! Sign-in by an identity provider, and the roles that it gives to people.

mod begin;
mod finish;
mod follow_roles;
mod person;
mod set_role;

use std::sync::Arc;

use labdata_domain::people::oidc::{OidcPolicy, SignInRefused};
use labdata_ports::people::oidc::{IdentityProvider, ProviderError};

pub use self::{
    begin::{BegunSignIn, begin_oidc},
    finish::{Callback, OpenedSession, finish_oidc},
    follow_roles::follow_roles,
};
use crate::{Error, Services, maintenance::ensure_secret::ensure_secret};

/// Name of the secret that signs the cookies of sign-ins.
const SECRET: &str = "oidc-sign-in";

/// Value of `by` in the audit log.
const BY: &str = "identity_provider";

/// Sign-in by an identity provider.
#[derive(Clone)]
pub struct OidcService {
    /// The provider.
    pub provider: Arc<dyn IdentityProvider>,
    /// Rules about who may sign in, and with which role.
    pub policy: OidcPolicy,
}

impl std::fmt::Debug for OidcService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OidcService")
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

fn service(services: &Services) -> Result<Arc<OidcService>, Error> {
    services
        .oidc
        .clone()
        .ok_or_else(|| Error::refused(SignInRefused::NotConfigured))
}

async fn secret(services: &Services) -> Result<[u8; 32], Error> {
    ensure_secret(&*services.tenancy, &*services.ids, SECRET).await
}

/// Makes the error of a use case of one of the provider.
fn of_provider(error: ProviderError) -> Error {
    match error {
        ProviderError::Refused(code) => Error::refused(SignInRefused::ByProvider(code)),
        ProviderError::Invalid(reason) => {
            tracing::warn!(reason, "a response of the identity provider is not valid");
            Error::refused(SignInRefused::InvalidTokens)
        }
        ProviderError::Unavailable(reason) => {
            tracing::warn!(reason, "the identity provider does not respond");
            Error::Unavailable(reason)
        }
    }
}
