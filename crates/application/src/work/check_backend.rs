//! Checks that the installation may use its job backend.

use labdata_domain::work::{BackendPolicy, SharedBackend};

use crate::{Error, Services};

/// Reason why scripts do not run on the backend.
#[derive(Debug, thiserror::Error)]
pub enum CheckBackendError {
    /// Several organizations would share it, and the operator does not allow that.
    #[error(transparent)]
    Shared(#[from] SharedBackend),
    /// The ports failed.
    #[error(transparent)]
    Failed(#[from] Error),
}

/// Checks a backend against the organizations that exist now. Others may be created later, so every
/// run is checked again before it begins.
///
/// # Errors
/// [`CheckBackendError`].
#[tracing::instrument(level = "debug", skip_all)]
pub async fn check_backend(
    services: &Services,
    policy: BackendPolicy,
) -> Result<(), CheckBackendError> {
    if policy.depends_on_organizations() {
        let organizations = services
            .tenancy
            .organizations()
            .await
            .map_err(Error::from)?;
        policy.check(organizations.len())?;
    }
    Ok(())
}
