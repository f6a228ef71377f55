//! Revokes an API key.

use labdata_domain::{
    ids::ApiKeyId,
    people::{actor::Actor, scope::Scope},
};

use crate::{Error, Services};

/// Revokes a key: at once in this process, within seconds in every other. A key that is revoked
/// already stays as it is.
///
/// # Errors
/// `Forbidden` without the admin scope; `NotFound`.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn revoke_api_key(ports: &Services, actor: &Actor, id: ApiKeyId) -> Result<(), Error> {
    actor.require(Scope::Admin)?;
    ports
        .api_keys
        .revoke(actor.organization, id, ports.clock.now())
        .await?;
    // On other servers a cached entry still counts for the few seconds of its lifetime.
    ports.key_cache.evict(id);
    Ok(())
}
