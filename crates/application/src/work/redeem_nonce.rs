//! Exchanges the nonce of a run for its key.

use labdata_domain::{
    people::{
        PlainApiKey,
        run_nonce::{NONCE_USED_TWICE, NonceRefusal, PlainRunNonce},
    },
    work::WorkId,
};
use labdata_ports::{
    PortError,
    work::{NonceUse, WorkClaim},
};

use super::{
    copy_log::append_notice,
    end_work::forget_keys,
    run_key::{ATTEMPTS, RunRights, run_key},
};
use crate::{Error, Services};

/// Returns the key of the run to which the nonce belongs. A second use revokes the key, because either
/// caller may be a thief; the log of the server and that of the run say so.
///
/// # Errors
/// `Unauthenticated` for a nonce that is malformed, unknown, expired or used.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn redeem_nonce(services: &Services, presented: &str) -> Result<PlainApiKey, Error> {
    let presented =
        PlainRunNonce::parse(presented).ok_or_else(|| Error::refused(NonceRefusal::Unknown))?;
    let (execution, attempt) = (presented.execution(), presented.attempt());
    let found = services.api_keys.find_run_nonce(execution, attempt).await?;
    let nonce = found.ok_or_else(|| Error::refused(NonceRefusal::Unknown))?;
    let now = services.clock.now();
    match nonce.check(&presented, now) {
        // The queue decides about a repeated use, also where two come at once.
        Ok(()) | Err(NonceRefusal::Used) => {}
        Err(refusal) => return Err(Error::refused(refusal)),
    }
    let claim = WorkClaim {
        organization: nonce.organization,
        work: WorkId::Execution(execution),
        attempt,
    };
    let rights = RunRights {
        user: nonce.user,
        scopes: nonce.scopes,
    };
    for _ in 0..ATTEMPTS {
        let (key, plain) = run_key(services, claim, rights, nonce.key_expires_at);
        match services.run_keys.redeem_nonce(claim, &key).await {
            Ok(NonceUse::First) => return Ok(plain),
            Ok(NonceUse::Repeated) => {
                report_theft(services, claim).await;
                return Err(Error::refused(NonceRefusal::Used));
            }
            Ok(NonceUse::RunLost) => return Err(Error::refused(NonceRefusal::Unknown)),
            // Another key has the random prefix: the next one is almost certainly free.
            Err(PortError::Conflict(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Error::Internal(
        "every random key prefix is taken".to_owned(),
    ))
}

/// Tells operator and author of a nonce that was used twice, and forgets the revoked key.
async fn report_theft(services: &Services, claim: WorkClaim) {
    forget_keys(services, claim.work);
    tracing::warn!(
        organization = %claim.organization,
        execution = %claim.work,
        attempt = claim.attempt,
        "the nonce of a run was used twice, perhaps by a thief; its key is revoked"
    );
    if let Err(error) = append_notice(services, claim, NONCE_USED_TWICE).await {
        tracing::warn!(execution = %claim.work, %error, "could not write to the log of a run");
    }
}
