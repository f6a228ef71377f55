//! Contract of [`WorkQueue`](labdata_ports::work::WorkQueue): ends of work and lost workers. Every
//! clause holds for both kinds of work.

use futures::future::join_all;
use labdata_domain::{
    ids::ExecutionId,
    work::{WorkKind, WorkRecord},
};
use labdata_ports::work::{ExpiredWork, WorkClaim};
use time::Duration;

use crate::{
    given::{self, at},
    work::lab::{WorkLab, expire, expire_given_up, failure, success},
};

/// A lease that does not end during a clause.
const LONG: Duration = Duration::HOUR;

impl WorkLab {
    /// Every call of the holder is refused, and changes nothing.
    async fn assert_lost(&self, record: &WorkRecord, lost: WorkClaim) {
        let kind = lost.work.kind();
        let before = self.stored(record).await;
        assert!(!self.work.renew(lost, LONG).await.unwrap());
        assert!(!self.work.release(lost, at(90)).await.unwrap());
        for end in [success(kind), failure(kind)] {
            assert_eq!(self.finish(lost, &end, at(91)).await, None);
        }
        assert_eq!(self.stored(record).await, before);
    }
}

crate::suite!(
    use work::queue_ends as work_queue_ends;

    /// A second end is refused and changes nothing, and the work is not claimed again.
    async fn work_is_finished_once(lab: &WorkLab) {
        for kind in WorkKind::ALL {
            let (queued, claim) = lab.claimed(kind, at(0)).await;
            let ended = lab.finish(claim, &failure(kind), at(9)).await;
            assert_eq!(lab.finish(claim, &success(kind), at(10)).await, None);
            assert_eq!(Some(lab.stored(&queued).await), ended);
            assert_eq!(lab.claim(kind, 10, at(11)).await, []);
            assert_eq!(lab.work.held().await.unwrap(), []);
        }
    }

    /// Work is not ended by the end of another kind, nor by the claim of another organization.
    async fn work_is_ended_by_its_own_claim_and_kind(lab: &WorkLab) {
        for (kind, other) in [
            (WorkKind::Run, WorkKind::Training),
            (WorkKind::Training, WorkKind::Run),
        ] {
            let (_, claim) = lab.claimed(kind, at(0)).await;
            assert_eq!(lab.finish(claim, &failure(other), at(1)).await, None);
            let theirs = WorkClaim {
                organization: lab.theirs,
                ..claim
            };
            assert_eq!(lab.finish(theirs, &failure(kind), at(1)).await, None);
            assert!(!lab.work.renew(theirs, Duration::ZERO).await.unwrap());
            assert!(lab.finish(claim, &failure(kind), at(2)).await.is_some());
        }
    }

    /// Work whose worker renews its lease is not lost.
    async fn a_renewed_lease_does_not_end(lab: &WorkLab) {
        for kind in WorkKind::ALL {
            let (queued, claim) = lab.claimed(kind, at(0)).await;
            let running = lab.stored(&queued).await;
            assert!(lab.work.renew(claim, Duration::ZERO).await.unwrap());
            let seen = lab.work.held().await.unwrap();
            // A lease past its end counts until a sweep takes the work.
            assert!(lab.work.renew(claim, LONG).await.unwrap());
            let expired = expire(&*lab.work, &seen, at(50)).await;
            assert_eq!(expired, ExpiredWork::default());
            assert_eq!(lab.stored(&queued).await, running);
            assert_eq!(lab.lose(claim, at(51)).await.requeued, 1);
            let again = lab.tried_again(&queued).await;
            assert!(lab.cancel(&again, at(52)).await);
        }
    }

    /// The first lost worker has the work tried again, as another attempt; the second fails it.
    async fn work_whose_worker_is_lost_is_tried_once_more(lab: &WorkLab) {
        for kind in WorkKind::ALL {
            let (queued, first) = lab.claimed(kind, at(1)).await;
            let expired = lab.lose(first, at(20)).await;
            assert_eq!((expired.requeued, expired.failed), (1, vec![]));
            let again = lab.tried_again(&queued).await;
            assert_eq!(again.status(), queued.status());
            let second = lab.claim(kind, 1, at(30)).await.remove(0);
            assert_eq!((second.work, second.attempt), (again.id(), 2));
            let running = lab.stored(&again).await;
            let expired = lab.lose(second, at(50)).await;
            let unused = ExecutionId::new(given::uuid());
            let loss = running.lose_worker(2, unused, at(50)).unwrap();
            let (failed, retry) = (loss.record, loss.retry);
            assert_eq!((failed.status(), retry), ("failed", None));
            assert_eq!(lab.stored(&again).await, failed);
            assert_eq!((expired.requeued, expired.failed), (0, vec![failed]));
            assert_eq!(lab.claim(kind, 1, at(90)).await, []);
        }
    }

    /// A lost worker can change nothing of the work, neither while it is queued again, nor while another
    /// worker has it, nor after its end.
    async fn a_lost_worker_can_do_nothing_about_the_work(lab: &WorkLab) {
        for kind in WorkKind::ALL {
            let (queued, lost) = lab.claimed(kind, at(0)).await;
            lab.lose(lost, at(20)).await;
            lab.assert_lost(&queued, lost).await;
            let again = lab.tried_again(&queued).await;
            let holder = lab.claim(kind, 1, at(30)).await.remove(0);
            lab.assert_lost(&queued, lost).await;
            lab.assert_lost(&again, lost).await;
            assert!(lab.work.renew(holder, LONG).await.unwrap());
            assert!(lab.finish(holder, &success(kind), at(40)).await.is_some());
            lab.assert_lost(&queued, lost).await;
            lab.assert_lost(&again, holder).await;
        }
    }

    /// Releases of work do not count as lost workers.
    async fn released_work_is_queued_again_and_has_lost_no_worker(lab: &WorkLab) {
        for kind in WorkKind::ALL {
            let queued = lab.queued(kind, lab.ours, at(0)).await;
            for attempt in 1..=4 {
                let claim = lab.claim(kind, 1, at(10)).await.remove(0);
                assert_eq!(claim.attempt, attempt);
                assert!(lab.work.release(claim, at(11)).await.unwrap());
                assert!(!lab.work.release(claim, at(11)).await.unwrap());
                assert_eq!(lab.stored(&queued).await, queued);
            }
            let claim = lab.claim(kind, 1, at(20)).await.remove(0);
            assert_eq!(lab.lose(claim, at(40)).await.requeued, 1);
            let again = lab.tried_again(&queued).await;
            assert!(lab.cancel(&again, at(41)).await);
        }
    }

    /// The heartbeat and the result of the worker of cancelled work are refused.
    async fn the_worker_of_cancelled_work_learns_of_it(lab: &WorkLab) {
        for kind in WorkKind::ALL {
            let (queued, claim) = lab.claimed(kind, at(0)).await;
            assert!(lab.cancel(&queued, at(1)).await);
            assert_eq!(lab.stored(&queued).await.status(), "cancelled");
            lab.assert_lost(&queued, claim).await;
            assert_eq!(lab.claim(kind, 10, at(6)).await, []);
        }
    }

    /// If an end and a cancel are concurrent, both callers learn which one won.
    async fn of_a_finish_and_a_cancel_exactly_one_wins(lab: &WorkLab) {
        for kind in WorkKind::ALL {
            for _ in 0..8 {
                let (queued, claim) = lab.claimed(kind, at(0)).await;
                let end = success(kind);
                let (finished, cancelled) =
                    futures::join!(lab.finish(claim, &end, at(1)), lab.cancel(&queued, at(2)),);
                let stored = lab.stored(&queued).await;
                match (finished, cancelled) {
                    (Some(finished), false) => assert_eq!(stored, finished),
                    (None, true) => assert_eq!(stored.status(), "cancelled"),
                    other => panic!("expected one winner, got {other:?}"),
                }
            }
        }
    }

    /// Claims and cancels of the same work wait for each other: all end, and no cancelled work runs.
    async fn racing_claims_and_cancels_all_end(lab: &WorkLab) {
        for kind in WorkKind::ALL {
            for round in 0..6 {
                let mut queued = Vec::new();
                for _ in 0..6 {
                    queued.push(lab.queued(kind, lab.ours, at(round)).await);
                }
                let claims = (0..3).map(|_| lab.claim(kind, 3, at(round)));
                let cancels = queued.iter().map(|work| lab.cancel(work, at(round)));
                let (_, cancelled) = futures::join!(join_all(claims), join_all(cancels));
                assert_eq!(cancelled, [true; 6]);
                for work in &queued {
                    assert_eq!(lab.stored(work).await.status(), "cancelled");
                }
            }
            assert_eq!(lab.claim(kind, 9, at(9)).await, []);
        }
    }

    /// Concurrent sweepers count each lost worker once.
    async fn racing_sweepers_take_each_once(lab: &WorkLab) {
        for kind in WorkKind::ALL {
            for second in 0..6 {
                lab.queued(kind, lab.ours, at(second)).await;
            }
            for (seconds, expected) in [(10, (6, 0)), (110, (0, 6))] {
                let claims = lab.claim(kind, 10, at(seconds)).await;
                assert_eq!(claims.len(), 6);
                for claim in claims {
                    assert!(lab.work.renew(claim, Duration::ZERO).await.unwrap());
                }
                let sweeps = (0..4).map(|_| expire_given_up(&*lab.work, at(seconds)));
                let (mut requeued, mut failed) = (0, 0);
                for swept in join_all(sweeps).await {
                    requeued += swept.requeued;
                    failed += swept.failed.len();
                }
                assert_eq!((requeued, failed), expected);
            }
        }
    }

    /// Work of which another attempt has the lease by now is not taken.
    async fn a_lease_of_an_earlier_claim_takes_nothing(lab: &WorkLab) {
        for kind in WorkKind::ALL {
            let (queued, claim) = lab.claimed(kind, at(0)).await;
            let seen = lab.work.held().await.unwrap();
            let [held] = &*seen else {
                panic!("{seen:?}");
            };
            assert_eq!((held.organization, held.work), (lab.ours, claim.work));
            assert_eq!(held.lease.attempt, claim.attempt);
            assert!(lab.work.release(claim, at(1)).await.unwrap());
            let again = lab.claim(kind, 1, at(2)).await.remove(0);
            let expired = expire(&*lab.work, &seen, at(50)).await;
            assert_eq!(expired, ExpiredWork::default());
            assert!(lab.work.renew(again, LONG).await.unwrap());
            assert!(lab.cancel(&queued, at(52)).await);
        }
    }
);
