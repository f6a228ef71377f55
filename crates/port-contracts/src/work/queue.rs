//! Contract of [`WorkQueue`](labdata_ports::work::WorkQueue): claims. Every clause holds for both kinds
//! of work, which never meet in a queue.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use labdata_domain::{
    executions::{Execution, ExecutionState},
    ids::OrganizationId,
    models::{ModelVersion, VersionState},
    people::run_key::most_run_scopes,
    work::{FreeSlots, WaitingWork, WorkKind, WorkRecord, next_work},
};
use labdata_ports::work::{ClaimedRun, ClaimedTraining, Task, WorkClaim, WorkNews};

use crate::{
    given::at,
    work::lab::{TIMEOUT, WorkLab, failure, ids, version_of},
};

/// Numbers that look random and are the same for the same seed (Knuth's MMIX generator).
fn pseudo_random(seed: u64) -> impl Iterator<Item = usize> {
    let step = |state: &u64| {
        let next = state.wrapping_mul(6_364_136_223_846_793_005);
        Some(next.wrapping_add(1_442_695_040_888_963_407))
    };
    std::iter::successors(Some(seed), step)
        .skip(1)
        .map(|state| usize::try_from(state >> 33).unwrap())
}

crate::suite!(
    use work::queue as work_queue;

    /// A claim takes the work queued first, across organizations, at most `limit`.
    async fn the_oldest_work_is_claimed_first(lab: &WorkLab) {
        for kind in WorkKind::ALL {
            let third = lab.queued(kind, lab.ours, at(30)).await.id();
            let first = lab.queued(kind, lab.theirs, at(10)).await.id();
            let second = lab.queued(kind, lab.ours, at(20)).await.id();
            let two = lab.claim(kind, 2, at(40)).await;
            assert_eq!(ids(&two), [(lab.theirs, first), (lab.ours, second)]);
            assert_eq!(ids(&lab.claim(kind, 2, at(40)).await), [(lab.ours, third)]);
            assert_eq!(lab.claim(kind, 2, at(40)).await, []);
        }
    }

    /// A claim takes work of its kind only.
    async fn a_claim_takes_no_work_of_another_kind(lab: &WorkLab) {
        let run = lab.queued(WorkKind::Run, lab.ours, at(0)).await.id();
        assert_eq!(lab.claim(WorkKind::Training, 9, at(1)).await, []);
        let training = lab.queued(WorkKind::Training, lab.ours, at(2)).await.id();
        for (kind, id) in [(WorkKind::Run, run), (WorkKind::Training, training)] {
            assert_eq!(ids(&lab.claim(kind, 9, at(3)).await), [(lab.ours, id)]);
        }
    }

    /// Beside a worker's slots, one is for an organization that runs nothing of the kind.
    async fn long_work_of_one_organization_leaves_a_slot_to_others(lab: &WorkLab) {
        for kind in WorkKind::ALL {
            for second in 0..3 {
                lab.queued(kind, lab.ours, at(second)).await;
            }
            let claimed = lab.claim_for(kind, FreeSlots::of_worker(2, 0), at(4)).await;
            assert_eq!(claimed.len(), 2);
            let one_free = FreeSlots::of_worker(2, 2);
            assert_eq!(lab.claim_for(kind, one_free, at(5)).await, []);
            let short = lab.queued(kind, lab.theirs, at(6)).await;
            let claimed = lab.claim_for(kind, one_free, at(7)).await;
            assert_eq!(claimed.len(), 1);
            assert_eq!(claimed[0].claim.work, short.id());
        }
    }

    /// An organization with much queued work does not delay the rest.
    async fn organizations_take_turns(lab: &WorkLab) {
        for kind in WorkKind::ALL {
            let (many, few) = (lab.ours, lab.theirs);
            for second in 0..90 {
                lab.queued(kind, many, at(second)).await;
            }
            for second in [100, 101, 102] {
                lab.queued(kind, few, at(second)).await;
            }
            let turn = async |limit| -> Vec<OrganizationId> {
                let claimed = lab.claim(kind, limit, at(200)).await.into_iter();
                claimed.map(|claim| claim.organization).collect()
            };
            assert_eq!(turn(2).await, [many, few]);
            // One of each is running: the older one is next, then the organization with fewer.
            assert_eq!(turn(1).await, [many]);
            assert_eq!(turn(1).await, [few]);
            assert_eq!(turn(3).await, [many, many, few]);
            // No other organization has queued work.
            assert_eq!(turn(90).await.len(), 86);
            assert_eq!(turn(1).await, []);
        }
    }

    /// For any queue, a claim takes the work that [`next_work`] names, in its order.
    async fn claims_take_the_work_that_the_domain_names(lab: &WorkLab) {
        let third = lab.organization("third").await.id;
        let organizations = [lab.ours, lab.theirs, third];
        for (kind, seed) in [(WorkKind::Run, 7), (WorkKind::Training, 11)] {
            let (mut waiting, mut running) = (Vec::new(), Vec::<WorkClaim>::new());
            let mut numbers = pseudo_random(seed);
            for round in 0..20 {
                for _ in 0..numbers.next().unwrap() % 4 {
                    let organization = organizations[numbers.next().unwrap() % 3];
                    // Some are queued at the same time: their ids decide.
                    let queued_at = at(round / 2);
                    let queued = lab.queued(kind, organization, queued_at).await;
                    waiting.push(WaitingWork {
                        organization,
                        id: queued.id(),
                        queued_at,
                    });
                }
                let concurrency = u32::try_from(numbers.next().unwrap() % 4).unwrap();
                let slots = FreeSlots::of_worker(concurrency, 0);
                let mut held = BTreeMap::new();
                for claim in &running {
                    *held.entry(claim.organization).or_default() += 1;
                }
                let expected = next_work(waiting.clone(), &held, slots);
                let claimed = lab.claim_for(kind, slots, at(100)).await;
                let claims: Vec<WorkClaim> = claimed.iter().map(|work| work.claim).collect();
                let named = expected.iter().map(|work| (work.organization, work.id));
                assert_eq!(
                    ids(&claims),
                    named.collect::<Vec<_>>(),
                    "round {round}: {slots:?} for {waiting:?} beside {held:?}"
                );
                waiting.retain(|work| !expected.contains(work));
                running.extend(claims);
                while !running.is_empty() && numbers.next().unwrap().is_multiple_of(3) {
                    let claim = running.swap_remove(numbers.next().unwrap() % running.len());
                    let finished = lab.finish(claim, &failure(kind), at(101)).await;
                    assert!(finished.is_some());
                }
            }
        }
    }

    /// A claimed run starts at the time of the claim, and its deadline is the end of its timeout.
    async fn a_claimed_run_is_running_within_its_timeout(lab: &WorkLab) {
        let WorkRecord::Run(queued) = lab.queued(WorkKind::Run, lab.ours, at(0)).await else {
            panic!("a run was queued");
        };
        let somebody = lab.user(lab.ours, "somebody@example.org").await;
        let slots = FreeSlots::for_any(1);
        let claimed = lab.claim_for(WorkKind::Run, slots, at(7)).await.remove(0);
        let execution = Execution {
            state: ExecutionState::Running {
                deadline: Some(at(7) + TIMEOUT),
            },
            started_at: Some(at(7)),
            ..*queued
        };
        let running = WorkRecord::Run(Box::new(execution.clone()));
        assert_eq!(lab.stored(&running).await, running);
        let expected = WorkClaim {
            organization: lab.ours,
            work: running.id(),
            attempt: 1,
        };
        assert_eq!(claimed.claim, expected);
        let task = Task::Run(Box::new(ClaimedRun {
            execution,
            started_by: somebody.id,
            trigger: None,
            scopes: most_run_scopes(),
        }));
        assert_eq!(claimed.task, task);
    }

    /// The version is training since the time of the claim.
    async fn a_claimed_training_has_its_version_and_its_dataset(lab: &WorkLab) {
        let queued = lab.queued(WorkKind::Training, lab.ours, at(0)).await;
        let slots = FreeSlots::for_any(1);
        let claimed = lab
            .claim_for(WorkKind::Training, slots, at(7))
            .await
            .remove(0);
        let version = ModelVersion {
            state: VersionState::Training { started_at: at(7) },
            ..version_of(&queued).clone()
        };
        let training = WorkRecord::Training(Box::new(version.clone()));
        assert_eq!(lab.stored(&training).await, training);
        let dataset = lab.datasets.get(lab.ours, version.dataset).await.unwrap();
        let task = Task::Training(Box::new(ClaimedTraining { version, dataset }));
        assert_eq!(claimed.task, task);
    }

    /// Concurrent workers claim all work exactly once.
    async fn racing_workers_claim_each_once(lab: &WorkLab) {
        for kind in WorkKind::ALL {
            let mut waiting = BTreeSet::new();
            for second in 0..24 {
                waiting.insert(lab.queued(kind, lab.ours, at(second)).await.id());
            }
            let mut given_out = Vec::new();
            loop {
                let claims = join_all((0..6).map(|_| lab.claim(kind, 3, at(60)))).await;
                let before = given_out.len();
                given_out.extend(claims.into_iter().flatten().map(|claim| claim.work));
                if given_out.len() == before {
                    break;
                }
            }
            assert_eq!(given_out.len(), 24);
            assert_eq!(given_out.into_iter().collect::<BTreeSet<_>>(), waiting);
        }
    }

    /// An earlier subscriber is notified of new work and of work that returns to the queue, even if the
    /// notification came before it waited.
    async fn subscribers_are_signaled_when_work_is_queued(lab: &WorkLab) {
        for kind in WorkKind::ALL {
            let mut news = lab.work.subscribe(kind, WorkNews::Queued);
            let (_, claim) = lab.claimed(kind, at(0)).await;
            news.next().await;
            assert!(lab.work.release(claim, at(1)).await.unwrap());
            news.next().await;
            lab.claim(kind, 1, at(2)).await;
        }
    }

    /// Subscribers are notified of a cancel, of any other end, and of the loss of a worker.
    async fn subscribers_are_signaled_when_work_ends(lab: &WorkLab) {
        for kind in WorkKind::ALL {
            let mut news = lab.work.subscribe(kind, WorkNews::Ended);
            let queued = lab.queued(kind, lab.ours, at(0)).await;
            assert!(lab.cancel(&queued, at(1)).await);
            news.next().await;
            let (_, claim) = lab.claimed(kind, at(2)).await;
            lab.finish(claim, &failure(kind), at(3)).await;
            news.next().await;
            let (_, claim) = lab.claimed(kind, at(4)).await;
            lab.lose(claim, at(5)).await;
            news.next().await;
        }
    }

    /// Followers of work are notified of its end; those of a training, of its start too.
    async fn followers_are_signaled_of_the_end(lab: &WorkLab) {
        for kind in WorkKind::ALL {
            let queued = lab.queued(kind, lab.ours, at(0)).await;
            let mut followed = lab.work.follow(queued.id());
            let claim = lab.claim(kind, 1, at(1)).await.remove(0);
            if kind == WorkKind::Training {
                followed.next().await;
            }
            lab.finish(claim, &failure(kind), at(2)).await;
            followed.next().await;
        }
    }
);
