//! Authenticates a caller by an API key.

use labdata_domain::people::{ApiKey, PlainApiKey, actor::Actor, credential::InvalidCredential};
use time::{Duration, OffsetDateTime};

use crate::{Error, Services};

/// A key's last use is noted at most this often.
const TOUCH_EVERY: Duration = Duration::minutes(1);

/// Finds the caller that a key belongs to.
///
/// # Errors
/// `Unauthenticated` for a key that is malformed, unknown, revoked or expired, or whose user is
/// disabled.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn authenticate(services: &Services, presented: &str) -> Result<Actor, Error> {
    let presented = PlainApiKey::parse(presented).ok_or_else(invalid)?;
    let now = services.clock.now();
    // Read before the database, so that a revocation in between discards the result.
    let generation = match services.key_cache.get(presented.hash(), now) {
        Ok(actor) => return Ok(actor),
        Err(generation) => generation,
    };
    let found = services.api_keys.find_by_prefix(presented.prefix()).await?;
    let found = found.ok_or_else(invalid)?;
    if !found.admits(&presented, now) {
        return Err(invalid());
    }
    let actor = found.actor();
    let key = found.key;
    note_use(services, &key, now).await;
    services
        .key_cache
        .insert(generation, key.hash, actor.clone(), now, key.expires_at);
    Ok(actor)
}

/// Notes the use, where the last note is old. A failure does not concern the caller.
async fn note_use(services: &Services, key: &ApiKey, now: OffsetDateTime) {
    let fresh = key
        .last_used_at
        .is_some_and(|last| now - last < TOUCH_EVERY);
    if fresh {
        return;
    }
    // A request must not fail because the time of its use cannot be stored.
    if let Err(error) = services.api_keys.touch(&[(key.id, now)]).await {
        tracing::warn!(%error, api_key = %key.id, "could not note the use of an API key");
    }
}

fn invalid() -> Error {
    Error::refused(InvalidCredential::Key)
}
