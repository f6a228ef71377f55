//! Contract of [`WorkQueue`] beside [`labdata_ports::data::DataStore`]: what happens to a run on the platform while
//! something else does.
//!
//! Of two changes at once, the outcome MUST be that of one after the other, or of one alone while the other is
//! refused.

use std::sync::Arc;

use futures::future::join;
use labdata_domain::{
    data::write::WritePlan,
    ids::ExecutionId,
    scalar::DataType,
    work::{FreeSlots, WorkKind},
};
use labdata_ports::{
    data::WriteTarget,
    work::{HeldWork, WorkQueue},
};
use serde_json::{Value, json};

use crate::{
    Itself, Subject,
    catalog::definitions::{curated, unique},
    data::lab::{DataHarness, Lab, insert, request, writing_time},
    given::{self, at},
    work::lab::{expire, new_run, success, terms},
};

/// A harness over the queue of work and the rows that runs write.
pub trait RunHarness: DataHarness + Subject<dyn WorkQueue> {}

impl<H> RunHarness for H where H: DataHarness + Subject<dyn WorkQueue> {}

/// A change of the run of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// A worker asks for work.
    Claim,
    /// The run writes a row.
    Write,
    /// Its worker reports that it succeeded.
    Finish,
    /// Its worker returns it.
    Release,
    /// It is taken from its worker, who gave no sign of life.
    Lose,
    /// A user cancels it.
    Cancel,
    /// A user reverts what it wrote.
    Revert,
}

use Change::{Cancel, Claim, Finish, Lose, Release, Revert, Write};

/// State after two changes: the names of rows, the status of the run and of the one that retries it, and which
/// changes were carried out.
type Outcome = ((Vec<Value>, Vec<&'static str>), [bool; 2]);

/// A run that waits, or one that is held and has written a row.
struct Round<'l> {
    lab: &'l Lab,
    work: Arc<dyn WorkQueue>,
    table: String,
    run: ExecutionId,
    held: Option<HeldWork>,
    /// A further row. Plans change nothing, so it is made before all changes.
    plan: WritePlan,
}

impl<'l> Round<'l> {
    async fn new(harness: &impl RunHarness, lab: &'l Lab, is_held: bool) -> Self {
        let work: Arc<dyn WorkQueue> = harness.subject();
        let table = format!("round_{}", given::uuid().simple());
        let columns = vec![unique("name", DataType::String)];
        lab.define(&curated(&table, columns)).await.unwrap();
        let job = given::job("some job", at(0));
        let job = lab.jobs.ensure(lab.organization, &job).await.unwrap();
        let run = new_run(job.id, lab.user, at(0));
        lab.executions.queue(lab.organization, &run).await.unwrap();
        let mut held = Vec::new();
        if is_held {
            let slots = FreeSlots::for_any(1);
            let claimed = work.claim(WorkKind::Run, slots, terms(at(10))).await;
            assert_eq!(claimed.unwrap().len(), 1);
            held = work.held().await.unwrap();
            let first = request([insert(&table, json!([{ "name": "first" }]))], []);
            lab.write_under(run.id, first).await.unwrap();
        }
        let second = request([insert(&table, json!([{ "name": "second" }]))], []);
        Self {
            plan: lab.plan(second).await.unwrap(),
            lab,
            work,
            table,
            run: run.id,
            held: held.pop(),
        }
    }

    /// Returns false if the change was refused.
    async fn apply(&self, change: Change) -> bool {
        let lab = self.lab;
        let claim = self.held.map(|held| labdata_ports::work::WorkClaim {
            organization: held.organization,
            work: held.work,
            attempt: held.lease.attempt,
        });
        let held = || claim.unwrap();
        match change {
            Claim => {
                let slots = FreeSlots::for_any(1);
                let claimed = self.work.claim(WorkKind::Run, slots, terms(at(110))).await;
                let mut claimed = claimed.unwrap().into_iter();
                // The run itself, or the one that retries it.
                claimed.next().is_some()
            }
            Write => {
                let target = WriteTarget::Existing(self.run);
                lab.apply(&self.plan, target, writing_time()).await.is_ok()
            }
            Finish => {
                let end = success(WorkKind::Run);
                let finished = self.work.finish(held(), &end, at(150)).await;
                finished.unwrap().is_some()
            }
            Release => self.work.release(held(), at(150)).await.unwrap(),
            Lose => {
                let expired = expire(&*self.work, &Vec::from_iter(self.held), at(150)).await;
                expired.requeued == 1 || expired.failed.len() == 1
            }
            Cancel => {
                let cancelled = lab.executions.cancel(lab.organization, self.run, at(150));
                cancelled.await.is_ok()
            }
            Revert => lab.revert(self.run).await.is_ok(),
        }
    }

    /// The state after the changes. Neither the run nor its retry waits for the next round.
    async fn end(self) -> (Vec<Value>, Vec<&'static str>) {
        let lab = self.lab;
        let rows = lab.column(&self.table, "name").await;
        let (mut statuses, mut next) = (Vec::new(), Some(self.run));
        while let Some(id) = next {
            let execution = lab.execution(id).await;
            statuses.push(execution.state.as_str());
            next = execution.retried_by();
            let cancelled = lab.executions.cancel(lab.organization, id, at(150));
            cancelled.await.ok();
        }
        (rows, statuses)
    }
}

/// Fails unless these two changes have an allowed outcome when they are made at once.
async fn assert_serial(harness: &impl RunHarness, lab: &Lab, is_held: bool, pair: [Change; 2]) {
    let [one, other] = pair;
    let round = async || Round::new(harness, lab, is_held).await;
    let mut serial = Vec::<Outcome>::new();
    for turned in [false, true] {
        let round = round().await;
        let done = if turned {
            let second = round.apply(other).await;
            [round.apply(one).await, second]
        } else {
            [round.apply(one).await, round.apply(other).await]
        };
        serial.push((round.end().await, done));
    }
    let mut alone = Vec::new();
    for change in pair {
        let round = round().await;
        round.apply(change).await;
        alone.push(round.end().await);
    }
    let untouched = round().await.end().await;
    for _ in 0..3 {
        let round = round().await;
        let (first, second) = join(round.apply(one), round.apply(other)).await;
        let found: Outcome = (round.end().await, [first, second]);
        let is_allowed = serial.contains(&found)
            || match found.1 {
                [true, true] => false,
                [true, false] => found.0 == alone[0],
                [false, true] => found.0 == alone[1],
                [false, false] => found.0 == untouched,
            };
        assert!(
            is_allowed,
            "{pair:?}: {found:?}, but {serial:?} one after the other"
        );
    }
}

/// Tests a change of a waiting or held run beside each other change.
async fn assert_serial_beside(
    harness: &impl RunHarness,
    is_held: bool,
    change: Change,
    others: &[Change],
) {
    let lab = Lab::empty(harness).await;
    for other in others {
        assert_serial(harness, &lab, is_held, [change, *other]).await;
    }
}

crate::suite!(
    use work::interleavings as work_interleavings;

    /// The start of a run beside another worker, a cancellation, and writes and reverts in its name.
    async fn a_claim_beside_any_change_is_before_or_after_it(harness: &Itself<impl RunHarness>) {
        assert_serial_beside(harness, false, Claim, &[Claim, Write, Cancel, Revert]).await;
    }

    /// The claim of a run that its worker returns or loses.
    async fn a_claim_beside_the_return_of_a_run_is_before_or_after_it(
        harness: &Itself<impl RunHarness>,
    ) {
        assert_serial_beside(harness, true, Claim, &[Release, Lose, Finish]).await;
    }

    /// A write of a run beside the end of its attempt.
    async fn a_write_beside_any_end_is_before_or_after_it(harness: &Itself<impl RunHarness>) {
        assert_serial_beside(
            harness,
            true,
            Write,
            &[Finish, Release, Lose, Cancel, Revert],
        )
        .await;
    }

    /// A revert of a run beside the end of its attempt.
    async fn a_revert_beside_any_end_is_before_or_after_it(harness: &Itself<impl RunHarness>) {
        assert_serial_beside(
            harness,
            true,
            Revert,
            &[Finish, Release, Lose, Cancel, Revert],
        )
        .await;
    }

    /// Ends of an attempt beside each other: one of them is carried out.
    async fn of_two_ends_one_is_carried_out(harness: &Itself<impl RunHarness>) {
        assert_serial_beside(harness, true, Finish, &[Finish, Release, Lose, Cancel]).await;
        let lab = Lab::empty(harness).await;
        for pair in [
            [Lose, Lose],
            [Lose, Release],
            [Lose, Cancel],
            [Release, Cancel],
        ] {
            assert_serial(harness, &lab, true, pair).await;
        }
    }
);
