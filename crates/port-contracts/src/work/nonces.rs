//! Contract of [`RunKeys`](labdata_ports::work::RunKeys): nonces that runs exchange for their keys.

use futures::future::join_all;
use labdata_domain::{
    ids::{OrganizationId, UserId},
    people::{
        ApiKey,
        run_nonce::{PlainRunNonce, RunNonce},
    },
    work::RunEnd,
};
use labdata_ports::{
    people::ApiKeyRepository,
    work::{NonceUse, WorkClaim},
};
use time::{Duration, OffsetDateTime};

use crate::{
    Subject,
    assertions::assert_conflict,
    given::{self, at},
    work::{
        lab::lose,
        runs::{Runs, claim, claimed, execution_of, finish},
    },
};

/// Makes one test of each clause of [`crate::work::nonces`].
#[macro_export]
macro_rules! run_nonces_contract {
    ($harness:ty $(, $test:meta)?) => {
        $crate::clauses! { [$($test)?] $harness, run_nonces in work::nonces:
            a_nonce_reads_back_as_it_was_stored,
            a_new_nonce_replaces_the_earlier_one,
            a_lost_worker_stores_no_nonce,
            the_first_use_of_a_nonce_stores_the_key,
            a_second_use_of_a_nonce_revokes_the_key,
            of_racing_uses_one_is_the_first_and_its_key_is_revoked,
            a_key_whose_prefix_is_taken_does_not_use_the_nonce,
            a_nonce_serves_its_own_run_only,
            nonces_die_with_the_hold_on_the_run,
        }
    };
}

fn nonce(claim: WorkClaim, user: UserId, secret: u8) -> RunNonce {
    let plain = PlainRunNonce::from_random(execution_of(claim), claim.attempt, [secret; 32]);
    RunNonce {
        organization: claim.organization,
        execution: execution_of(claim),
        attempt: claim.attempt,
        user,
        hash: plain.hash(),
        expires_at: at(60),
        key_expires_at: Some(at(60) + Duration::MICROSECOND),
        used_at: None,
    }
}

async fn found<H: Runs>(harness: &H, claim: WorkClaim) -> Option<RunNonce> {
    let keys = Subject::<dyn ApiKeyRepository>::subject(harness);
    let found = keys
        .find_run_nonce(execution_of(claim), claim.attempt)
        .await;
    found.unwrap()
}

/// A claimed run of a new organization, with its nonce.
async fn run_with_nonce<H: Runs>(harness: &H) -> (WorkClaim, RunNonce) {
    let lab = harness.organization("lab").await.id;
    another_run_with_nonce(harness, lab).await
}

async fn another_run_with_nonce<H: Runs>(
    harness: &H,
    organization: OrganizationId,
) -> (WorkClaim, RunNonce) {
    let run = claimed(harness, organization, at(0)).await;
    let nonce = nonce(run.claim, run.started_by, 7);
    assert!(harness.keys().store_nonce(&nonce).await.unwrap());
    (run.claim, nonce)
}

/// A key of the run, not stored yet.
async fn key<H: Runs>(harness: &H, claim: WorkClaim, now: OffsetDateTime) -> ApiKey {
    let user = harness.user(claim.organization, "ada@example.org").await;
    ApiKey {
        execution: claim.work.execution(),
        created_at: now,
        ..given::api_key(&user)
    }
}

async fn stored<H: Runs>(harness: &H, key: &ApiKey) -> Option<ApiKey> {
    let keys = Subject::<dyn ApiKeyRepository>::subject(harness);
    let found = keys.find_by_prefix(&key.prefix).await.unwrap();
    found.map(|found| found.key)
}

/// Every field of a nonce is stored. Another attempt at its run has none.
pub async fn a_nonce_reads_back_as_it_was_stored<H: Runs>(harness: &H) {
    let (claim, nonce) = run_with_nonce(harness).await;
    assert_eq!(found(harness, claim).await, Some(nonce));
    let other = WorkClaim {
        attempt: claim.attempt + 1,
        ..claim
    };
    assert_eq!(found(harness, other).await, None);
}

/// A run has one nonce, the last one that was stored.
pub async fn a_new_nonce_replaces_the_earlier_one<H: Runs>(harness: &H) {
    let (claim, first) = run_with_nonce(harness).await;
    let second = RunNonce {
        key_expires_at: None,
        ..nonce(claim, first.user, 8)
    };
    assert!(harness.keys().store_nonce(&second).await.unwrap());
    assert_eq!(found(harness, claim).await, Some(second));
}

/// A worker that lost the run stores no nonce, neither while it is queued again nor while another worker
/// runs it.
pub async fn a_lost_worker_stores_no_nonce<H: Runs>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let lost = claimed(harness, lab, at(0)).await;
    lose(&*harness.queue(), lost.claim, at(20)).await;
    for running_again in [false, true] {
        if running_again {
            assert_eq!(claim(harness, at(30), 1).await.len(), 1);
        }
        let late = nonce(lost.claim, lost.started_by, 7);
        assert!(!harness.keys().store_nonce(&late).await.unwrap());
        assert_eq!(found(harness, lost.claim).await, None);
    }
}

/// The first use marks the nonce and stores the key, which is not revoked.
pub async fn the_first_use_of_a_nonce_stores_the_key<H: Runs>(harness: &H) {
    let (claim, nonce) = run_with_nonce(harness).await;
    let key = key(harness, claim, at(3)).await;
    let used = harness.keys().redeem_nonce(claim, &key).await.unwrap();
    assert_eq!(used, NonceUse::First);
    let stored = stored(harness, &key).await.unwrap();
    assert_eq!(format!("{stored:?}"), format!("{key:?}"));
    let marked = RunNonce {
        used_at: Some(at(3)),
        ..nonce
    };
    assert_eq!(found(harness, claim).await, Some(marked));
}

/// A second use stores no key and revokes the first one; the time of the first use stays.
pub async fn a_second_use_of_a_nonce_revokes_the_key<H: Runs>(harness: &H) {
    let (claim, _) = run_with_nonce(harness).await;
    let (first, second) = (
        key(harness, claim, at(3)).await,
        key(harness, claim, at(5)).await,
    );
    let run_keys = harness.keys();
    run_keys.redeem_nonce(claim, &first).await.unwrap();
    for _ in 0..2 {
        let again = run_keys.redeem_nonce(claim, &second).await.unwrap();
        assert_eq!(again, NonceUse::Repeated);
    }
    let revoked = stored(harness, &first).await.unwrap().revoked_at;
    assert_eq!(revoked, Some(at(5)));
    assert!(stored(harness, &second).await.is_none());
    assert_eq!(found(harness, claim).await.unwrap().used_at, Some(at(3)));
}

/// Of uses at the same time one is the first. As there are others, its key ends up revoked.
pub async fn of_racing_uses_one_is_the_first_and_its_key_is_revoked<H: Runs>(harness: &H) {
    let (claim, _) = run_with_nonce(harness).await;
    let mut keys = Vec::new();
    for _ in 0..8 {
        keys.push(key(harness, claim, at(3)).await);
    }
    let run_keys = harness.keys();
    let uses = join_all(keys.iter().map(|key| run_keys.redeem_nonce(claim, key))).await;
    let first = |response: &Result<NonceUse, _>| matches!(response, Ok(NonceUse::First));
    assert_eq!(uses.iter().filter(|response| first(response)).count(), 1);
    for (key, response) in keys.iter().zip(&uses) {
        if first(response) {
            assert!(stored(harness, key).await.unwrap().revoked_at.is_some());
        } else {
            assert!(matches!(response, Ok(NonceUse::Repeated)), "{response:?}");
            assert!(stored(harness, key).await.is_none());
        }
    }
}

/// A use whose key is not stored does not count.
pub async fn a_key_whose_prefix_is_taken_does_not_use_the_nonce<H: Runs>(harness: &H) {
    let (claim, nonce) = run_with_nonce(harness).await;
    let taken = key(harness, claim, at(3)).await;
    let keys = Subject::<dyn ApiKeyRepository>::subject(harness);
    keys.add(&taken).await.unwrap();
    let clash = ApiKey {
        prefix: taken.prefix.clone(),
        ..key(harness, claim, at(4)).await
    };
    let run_keys = harness.keys();
    assert_conflict(run_keys.redeem_nonce(claim, &clash).await);
    assert_eq!(found(harness, claim).await, Some(nonce));
    let free = key(harness, claim, at(5)).await;
    let used = run_keys.redeem_nonce(claim, &free).await.unwrap();
    assert_eq!(used, NonceUse::First);
}

/// Another attempt, another run and another organization cannot use the nonce.
pub async fn a_nonce_serves_its_own_run_only<H: Runs>(harness: &H) {
    let (lab, theirs) = harness.two_organizations().await;
    let (own, nonce) = another_run_with_nonce(harness, lab).await;
    let without = claimed(harness, lab, at(0)).await.claim;
    let others = [
        without,
        WorkClaim {
            attempt: own.attempt + 1,
            ..own
        },
        WorkClaim {
            organization: theirs,
            ..own
        },
    ];
    for other in others {
        let key = key(harness, without, at(3)).await;
        let used = harness.keys().redeem_nonce(other, &key).await.unwrap();
        assert_eq!(used, NonceUse::RunLost, "{other:?}");
        assert!(stored(harness, &key).await.is_none());
    }
    assert_eq!(found(harness, own).await, Some(nonce));
}

/// However the hold on a run ends, its nonce finds nothing from then on.
pub async fn nonces_die_with_the_hold_on_the_run<H: Runs>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let queue = harness.queue();
    let completed = RunEnd {
        exit_code: Some(0),
        error: None,
    };
    let (finished, _) = another_run_with_nonce(harness, lab).await;
    finish(&*queue, finished, &completed, at(5)).await;
    let (cancelled, _) = another_run_with_nonce(harness, lab).await;
    let executions = harness.executions();
    executions
        .cancel(lab, execution_of(cancelled), at(5))
        .await
        .unwrap();
    let (released, _) = another_run_with_nonce(harness, lab).await;
    queue.release(released, at(5)).await.unwrap();
    let again = claim(harness, at(6), 1).await.remove(0).claim;
    finish(&*queue, again, &completed, at(7)).await;
    let (expired, _) = another_run_with_nonce(harness, lab).await;
    lose(&*queue, expired, at(20)).await;
    for claim in [finished, cancelled, released, expired] {
        assert_eq!(found(harness, claim).await, None);
        let key = key(harness, claim, at(8)).await;
        let used = harness.keys().redeem_nonce(claim, &key).await.unwrap();
        assert_eq!(used, NonceUse::RunLost);
        assert!(stored(harness, &key).await.is_none());
    }
}
