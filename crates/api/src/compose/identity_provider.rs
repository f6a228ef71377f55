//! Sign-in by an identity provider.

use std::sync::Arc;

use labdata_application::{maintenance::ensure_secret::ensure_secret, people::oidc::OidcService};
use labdata_http_client::Authorities;
pub use labdata_oidc::check_issuer;
use labdata_oidc::{OidcProvider, OidcProviderSettings};
use labdata_ports::{
    Clock, IdSource,
    people::{oidc::IdentityProvider, tenancy::TenancyRepository},
};

use crate::{
    settings::{OidcSettings, Settings},
    system::SystemClock,
};

/// Name of the secret that encrypts refresh tokens.
const REFRESH_TOKENS: &str = "oidc-refresh-tokens";

/// Creates the sign-in by the configured identity provider; `None` without one.
pub(super) async fn service(
    settings: &Settings,
    tenancy: &dyn TenancyRepository,
    ids: &dyn IdSource,
    clock: &Arc<dyn Clock>,
) -> anyhow::Result<Option<Arc<OidcService>>> {
    let Some(wanted) = &settings.oidc else {
        return Ok(None);
    };
    // From the database, because any server refreshes the sessions that another one began.
    let sealing = ensure_secret(tenancy, ids, REFRESH_TOKENS).await?;
    let provider = provider(wanted, &sealing, Arc::clone(clock)).map_err(anyhow::Error::msg)?;
    Ok(Some(Arc::new(OidcService {
        provider: Arc::new(provider),
        policy: wanted.policy.clone(),
    })))
}

fn provider(
    wanted: &OidcSettings,
    sealing: &[u8; 32],
    clock: Arc<dyn Clock>,
) -> Result<OidcProvider, String> {
    let settings = OidcProviderSettings {
        issuer: wanted.issuer.clone(),
        client_id: wanted.client_id.clone(),
        client_secret: wanted.client_secret.clone(),
        scopes: wanted.scopes.clone(),
        groups_claim: wanted.groups_claim.clone(),
    };
    let authorities = Authorities::of_machine().unwrap_or_else(|error| {
        // A provider on this machine is reached by http.
        tracing::warn!(%error, "no identity provider is reached by https");
        Authorities::none()
    });
    OidcProvider::new(settings, authorities, sealing, clock)
}

/// Finds out whether the configured identity provider responds with a document and keys that can be used.
///
/// # Errors
/// The reason, in one line.
pub async fn check_identity_provider(wanted: &OidcSettings) -> Result<(), String> {
    // Nothing is sealed by a check.
    let provider = provider(wanted, &[0; 32], Arc::new(SystemClock))?;
    provider.check().await.map_err(|error| error.to_string())
}
