//! Revokes an API key.

use labdata_domain::{
    audit::{AuditAction, AuditTarget, AuditTargetKind},
    ids::ApiKeyId,
    people::{actor::Actor, scope::Scope},
};

use crate::{
    Error, Services,
    audit::record::{Record, audited},
};

/// Revokes a key: at once in this process, within seconds in every other. A key that is revoked
/// already stays as it is.
///
/// # Errors
/// `Forbidden` without the admin scope; `NotFound`.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn revoke_api_key(services: &Services, actor: &Actor, id: ApiKeyId) -> Result<(), Error> {
    actor.require(Scope::Admin)?;
    let key = services.api_keys.get(actor.organization, id).await?.key;
    audited(services, actor, |within| async move {
        let revoked = within
            .api_keys
            .revoke(actor.organization, id, within.clock.now());
        revoked.await?;
        let target = AuditTarget::new(AuditTargetKind::ApiKey, id, key.name);
        let record = Record::of(AuditAction::ApiKeyRevoked, target).with("prefix", key.prefix);
        // Of a key that was revoked before, there is an entry.
        Ok(((), key.revoked_at.is_none().then_some(record)))
    })
    .await?;
    // On other servers a cached entry still counts for the few seconds of its lifetime.
    services.key_cache.evict(id);
    Ok(())
}
