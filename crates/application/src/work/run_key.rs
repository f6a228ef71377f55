//! Keys of runs.

use labdata_domain::{
    ids::{ApiKeyId, UserId},
    people::{ApiKey, PlainApiKey, scope::Scopes},
};
use labdata_ports::work::WorkClaim;
use time::OffsetDateTime;

use crate::{Services, people::create_api_key::random_key};

/// The name of keys that runs are given.
const KEY_NAME: &str = "job run";

/// Largest number of keys made until one has a free prefix.
pub(super) const ATTEMPTS: usize = 5;

/// User in whose name a run acts, and the scopes of its key.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunRights {
    pub(super) user: UserId,
    pub(super) scopes: Scopes,
}

/// Makes a key of a run, which is not stored yet. It acts for that run only
/// ([`labdata_domain::people::run_key`]).
pub(super) fn run_key(
    services: &Services,
    claim: WorkClaim,
    rights: RunRights,
    expires_at: Option<OffsetDateTime>,
) -> (ApiKey, PlainApiKey) {
    let plain = random_key(services);
    let key = ApiKey {
        id: ApiKeyId::new(services.ids.next_id()),
        organization: claim.organization,
        user: rights.user,
        name: KEY_NAME.to_owned(),
        prefix: plain.prefix().to_owned(),
        hash: plain.hash(),
        scopes: rights.scopes,
        tables: None,
        execution: claim.work.execution(),
        created_at: services.clock.now(),
        expires_at,
        last_used_at: None,
        revoked_at: None,
    };
    (key, plain)
}
