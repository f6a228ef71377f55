//! Creates secrets of the platform.

use labdata_ports::{IdSource, people::tenancy::TenancyRepository};

use crate::Error;

/// Returns the platform's secret of this name, and creates it if it does not exist. Takes single
/// ports because other ports need secrets to be created.
///
/// # Errors
/// Errors of the port.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn ensure_secret(
    tenancy: &dyn TenancyRepository,
    ids: &dyn IdSource,
    name: &str,
) -> Result<[u8; 32], Error> {
    let mut candidate = [0; 32];
    ids.fill_random(&mut candidate);
    // Several servers may start at once: the first secret that is stored counts for all.
    Ok(tenancy.ensure_secret(name, &candidate).await?)
}
