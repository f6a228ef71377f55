//! Contract of [`RunKeys`](labdata_ports::work::RunKeys): nonces that runs exchange for their keys.

use futures::future::join_all;
use labdata_domain::{
    ids::UserId,
    people::{
        ApiKey,
        run_nonce::{PlainRunNonce, RunNonce},
        scope::Scope,
    },
};
use labdata_ports::work::{NonceUse, WorkClaim};
use time::{Duration, OffsetDateTime};

use crate::{
    assertions::assert_conflict,
    given::{self, at},
    work::run_lab::{RunsLab, completed, execution_of},
};

fn nonce(claim: WorkClaim, user: UserId, secret: u8) -> RunNonce {
    let plain = PlainRunNonce::from_random(execution_of(claim), claim.attempt, [secret; 32]);
    RunNonce {
        organization: claim.organization,
        execution: execution_of(claim),
        attempt: claim.attempt,
        user,
        scopes: [Scope::Write].into_iter().collect(),
        hash: plain.hash(),
        expires_at: at(60),
        key_expires_at: Some(at(60) + Duration::MICROSECOND),
        used_at: None,
    }
}

async fn found(lab: &RunsLab, claim: WorkClaim) -> Option<RunNonce> {
    let found = lab.keys.find_run_nonce(execution_of(claim), claim.attempt);
    found.await.unwrap()
}

/// A claimed run of ours, with its nonce.
async fn run_with_nonce(lab: &RunsLab) -> (WorkClaim, RunNonce) {
    let run = lab.claimed(lab.ours, at(0)).await;
    let nonce = nonce(run.claim, run.started_by, 7);
    assert!(lab.run_keys.store_nonce(&nonce).await.unwrap());
    (run.claim, nonce)
}

/// A key of the run, not stored yet.
fn key(lab: &RunsLab, claim: WorkClaim, now: OffsetDateTime) -> ApiKey {
    ApiKey {
        execution: claim.work.execution(),
        created_at: now,
        ..given::api_key(&lab.ada)
    }
}

async fn stored(lab: &RunsLab, key: &ApiKey) -> Option<ApiKey> {
    let found = lab.keys.find_by_prefix(&key.prefix).await.unwrap();
    found.map(|found| found.key)
}

crate::suite!(
    use work::nonces as run_nonces;

    /// Every field of a nonce is stored. Another attempt at its run has none.
    async fn a_nonce_reads_back_as_it_was_stored(lab: &RunsLab) {
        let (claim, nonce) = run_with_nonce(lab).await;
        assert_eq!(found(lab, claim).await, Some(nonce));
        let other = WorkClaim {
            attempt: claim.attempt + 1,
            ..claim
        };
        assert_eq!(found(lab, other).await, None);
    }

    /// A run has one nonce, the last one that was stored.
    async fn a_new_nonce_replaces_the_earlier_one(lab: &RunsLab) {
        let (claim, first) = run_with_nonce(lab).await;
        let second = RunNonce {
            key_expires_at: None,
            ..nonce(claim, first.user, 8)
        };
        assert!(lab.run_keys.store_nonce(&second).await.unwrap());
        assert_eq!(found(lab, claim).await, Some(second));
    }

    /// A worker that lost the run stores no nonce, neither while it is queued again nor while another worker
    /// runs it.
    async fn a_lost_worker_stores_no_nonce(lab: &RunsLab) {
        let lost = lab.claimed(lab.ours, at(0)).await;
        lab.lose(lost.claim, at(20)).await;
        for running_again in [false, true] {
            if running_again {
                assert_eq!(lab.claim(at(30), 1).await.len(), 1);
            }
            let late = nonce(lost.claim, lost.started_by, 7);
            assert!(!lab.run_keys.store_nonce(&late).await.unwrap());
            assert_eq!(found(lab, lost.claim).await, None);
        }
    }

    /// The first use marks the nonce and stores the key, which is not revoked.
    async fn the_first_use_of_a_nonce_stores_the_key(lab: &RunsLab) {
        let (claim, nonce) = run_with_nonce(lab).await;
        let key = key(lab, claim, at(3));
        let used = lab.run_keys.redeem_nonce(claim, &key).await.unwrap();
        assert_eq!(used, NonceUse::First);
        let stored = stored(lab, &key).await.unwrap();
        assert_eq!(format!("{stored:?}"), format!("{key:?}"));
        let marked = RunNonce {
            used_at: Some(at(3)),
            ..nonce
        };
        assert_eq!(found(lab, claim).await, Some(marked));
    }

    /// A second use stores no key and revokes the first one; the time of the first use stays.
    async fn a_second_use_of_a_nonce_revokes_the_key(lab: &RunsLab) {
        let (claim, _) = run_with_nonce(lab).await;
        let (first, second) = (key(lab, claim, at(3)), key(lab, claim, at(5)));
        let run_keys = &lab.run_keys;
        run_keys.redeem_nonce(claim, &first).await.unwrap();
        for _ in 0..2 {
            let again = run_keys.redeem_nonce(claim, &second).await.unwrap();
            assert_eq!(again, NonceUse::Repeated);
        }
        let revoked = stored(lab, &first).await.unwrap().revoked_at;
        assert_eq!(revoked, Some(at(5)));
        assert!(stored(lab, &second).await.is_none());
        assert_eq!(found(lab, claim).await.unwrap().used_at, Some(at(3)));
    }

    /// Of uses at the same time one is the first. As there are others, its key ends up revoked.
    async fn of_racing_uses_one_is_the_first_and_its_key_is_revoked(lab: &RunsLab) {
        let (claim, _) = run_with_nonce(lab).await;
        let mut keys = Vec::new();
        for _ in 0..8 {
            keys.push(key(lab, claim, at(3)));
        }
        let run_keys = &lab.run_keys;
        let uses = join_all(keys.iter().map(|key| run_keys.redeem_nonce(claim, key))).await;
        let first = |response: &Result<NonceUse, _>| matches!(response, Ok(NonceUse::First));
        assert_eq!(uses.iter().filter(|response| first(response)).count(), 1);
        for (key, response) in keys.iter().zip(&uses) {
            if first(response) {
                assert!(stored(lab, key).await.unwrap().revoked_at.is_some());
            } else {
                assert!(matches!(response, Ok(NonceUse::Repeated)), "{response:?}");
                assert!(stored(lab, key).await.is_none());
            }
        }
    }

    /// A use whose key is not stored does not count.
    async fn a_key_whose_prefix_is_taken_does_not_use_the_nonce(lab: &RunsLab) {
        let (claim, nonce) = run_with_nonce(lab).await;
        let taken = key(lab, claim, at(3));
        lab.keys.add(&taken).await.unwrap();
        let clash = ApiKey {
            prefix: taken.prefix.clone(),
            ..key(lab, claim, at(4))
        };
        let run_keys = &lab.run_keys;
        assert_conflict(run_keys.redeem_nonce(claim, &clash).await);
        assert_eq!(found(lab, claim).await, Some(nonce));
        let free = key(lab, claim, at(5));
        let used = run_keys.redeem_nonce(claim, &free).await.unwrap();
        assert_eq!(used, NonceUse::First);
    }

    /// Another attempt, another run and another organization cannot use the nonce.
    async fn a_nonce_serves_its_own_run_only(lab: &RunsLab) {
        let (own, nonce) = run_with_nonce(lab).await;
        let without = lab.claimed(lab.ours, at(0)).await.claim;
        let others = [
            without,
            WorkClaim {
                attempt: own.attempt + 1,
                ..own
            },
            WorkClaim {
                organization: lab.theirs,
                ..own
            },
        ];
        for other in others {
            let key = key(lab, without, at(3));
            let used = lab.run_keys.redeem_nonce(other, &key).await.unwrap();
            assert_eq!(used, NonceUse::RunLost, "{other:?}");
            assert!(stored(lab, &key).await.is_none());
        }
        assert_eq!(found(lab, own).await, Some(nonce));
    }

    /// However the hold on a run ends, its nonce finds nothing from then on.
    async fn nonces_die_with_the_hold_on_the_run(lab: &RunsLab) {
        let (finished, _) = run_with_nonce(lab).await;
        lab.finish(finished, &completed(), at(5)).await;
        let (cancelled, _) = run_with_nonce(lab).await;
        lab.cancel(execution_of(cancelled), at(5)).await;
        let (released, _) = run_with_nonce(lab).await;
        lab.queue.release(released, at(5)).await.unwrap();
        let again = lab.claim(at(6), 1).await.remove(0).claim;
        lab.finish(again, &completed(), at(7)).await;
        let (expired, _) = run_with_nonce(lab).await;
        lab.lose(expired, at(20)).await;
        for claim in [finished, cancelled, released, expired] {
            assert_eq!(found(lab, claim).await, None);
            let key = key(lab, claim, at(8));
            let used = lab.run_keys.redeem_nonce(claim, &key).await.unwrap();
            assert_eq!(used, NonceUse::RunLost);
            assert!(stored(lab, &key).await.is_none());
        }
    }
);
