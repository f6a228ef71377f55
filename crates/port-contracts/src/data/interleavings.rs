//! Contract of [`labdata_ports::data::DataStore`]: two changes, in every order of their steps.
//!
//! A change is planned and then applied, as the use cases do. In every order, its outcome MUST be that of one
//! change after the other, or of one alone while the other is refused.

use futures::future::join;
use labdata_domain::{
    data::write::{Mode, WritePlan},
    executions::FinalStatus,
    ids::ExecutionId,
    scalar::DataType,
};
use serde_json::{Value, json};

use crate::{
    Itself,
    catalog::definitions::{column, curated, unique},
    data::{
        lab::{DataHarness, Lab, insert, request, table_write, writing_time},
        modify::by,
    },
    fixtures::Executions,
    given::at,
};

/// A change of the state that [`Round::new`] makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// A further row, under the open execution.
    Write,
    /// Another value of the row, under the open execution.
    Update,
    /// Another execution deletes the row.
    Delete,
    /// The open execution is reverted.
    Revert,
    /// The open execution is completed.
    Close,
    /// The open execution is cancelled.
    Cancel,
    /// The table gets a column.
    Define,
}

use Change::{Cancel, Close, Define, Delete, Revert, Update, Write};

const ALL: [Change; 7] = [Write, Update, Delete, Revert, Close, Cancel, Define];

/// Order of the steps of two changes. Plans change nothing, so their own order does not matter.
#[derive(Clone, Copy, Debug)]
enum Order {
    /// The first is planned and applied, then the second.
    OneAfterTheOther,
    /// Both are planned; then they are applied one after the other.
    BothPlanned,
    /// Both are planned, and applied at the same time.
    AtOnce,
}

/// State that two changes leave.
#[derive(Clone, Debug, PartialEq)]
struct State {
    rows: Vec<(Value, Value)>,
    columns: usize,
    status: &'static str,
}

/// A table with a row, under an execution that is open.
struct Round<'l> {
    lab: &'l Lab,
    table: String,
    execution: ExecutionId,
}

impl<'l> Round<'l> {
    async fn new(harness: &impl DataHarness, lab: &'l Lab, rounds: &mut usize) -> Self {
        *rounds += 1;
        let table = format!("round_{rounds}");
        let columns = vec![
            unique("name", DataType::String),
            column("volume", DataType::Float),
        ];
        lab.define(&curated(&table, columns)).await.unwrap();
        let execution = harness.execution(lab.organization, at(0), None).await.id;
        let first = request(
            [insert(&table, json!([{"name": "first", "volume": 1}]))],
            [],
        );
        lab.write_under(execution, first).await.unwrap();
        Self {
            lab,
            table,
            execution,
        }
    }

    /// The first step; an error is a refusal.
    async fn plan(&self, change: Change) -> Result<Option<WritePlan>, String> {
        let first = |mode, row: Value| by(&["name"], table_write(mode, &self.table, json!([row])));
        let write = match change {
            Write => insert(&self.table, json!([{"name": "second", "volume": 2}])),
            Update => first(Mode::Update, json!({"name": "first", "volume": 3})),
            Delete => first(Mode::Delete, json!({"name": "first"})),
            Revert | Close | Cancel | Define => return Ok(None),
        };
        let plan = self.lab.plan(request([write], [])).await;
        plan.map(Some).map_err(|problems| format!("{problems:?}"))
    }

    /// The second step; an error is a refusal.
    async fn apply(
        &self,
        change: Change,
        plan: Result<Option<WritePlan>, String>,
    ) -> Result<(), String> {
        let (lab, organization) = (self.lab, self.lab.organization);
        if let Some(plan) = plan? {
            let target = match change {
                Delete => Lab::new_execution("deleter"),
                _ => labdata_ports::data::WriteTarget::Existing(self.execution),
            };
            let written = lab.apply(&plan, target, writing_time()).await;
            return written.map(drop).map_err(|error| format!("{error:?}"));
        }
        match change {
            Revert => lab
                .revert(self.execution)
                .await
                .map(drop)
                .map_err(|error| format!("{error:?}")),
            Close => {
                let status = FinalStatus::Completed;
                let closed = lab
                    .executions
                    .close(organization, self.execution, status, at(150));
                closed.await.map(drop).map_err(|error| format!("{error:?}"))
            }
            Cancel => {
                let cancelled = lab.executions.cancel(organization, self.execution, at(150));
                cancelled
                    .await
                    .map(drop)
                    .map_err(|error| format!("{error:?}"))
            }
            _ => {
                let columns = vec![
                    unique("name", DataType::String),
                    column("volume", DataType::Float),
                    column("note", DataType::Text),
                ];
                let defined = lab.define(&curated(&self.table, columns)).await;
                defined.map(drop).map_err(|error| format!("{error:?}"))
            }
        }
    }

    async fn state(&self) -> State {
        let rows = self.lab.find(&self.table, json!({})).await;
        let mut rows: Vec<_> = rows
            .into_iter()
            .map(|row| (row["name"].clone(), row["volume"].clone()))
            .collect();
        rows.sort_by_key(|(name, _)| name.to_string());
        let catalog = self.lab.tables().await;
        State {
            rows,
            columns: catalog.table(&self.table).unwrap().columns.len(),
            status: self.lab.execution(self.execution).await.state.as_str(),
        }
    }
}

/// The outcome of two changes: what they leave, and which of them were carried out.
type Outcome = (State, [bool; 2]);

/// Makes two changes in an order.
async fn outcome(round: &Round<'_>, [one, other]: [Change; 2], order: Order) -> Outcome {
    let first = round.plan(one).await;
    let done = match order {
        Order::OneAfterTheOther => {
            let done = round.apply(one, first).await;
            let second = round.plan(other).await;
            [done, round.apply(other, second).await]
        }
        Order::BothPlanned => {
            let second = round.plan(other).await;
            let done = round.apply(one, first).await;
            [done, round.apply(other, second).await]
        }
        Order::AtOnce => {
            let second = round.plan(other).await;
            join(round.apply(one, first), round.apply(other, second))
                .await
                .into()
        }
    };
    (round.state().await, done.map(|done| done.is_ok()))
}

/// Fails unless every order of these two changes has an allowed outcome.
async fn assert_serial(
    harness: &impl DataHarness,
    lab: &Lab,
    rounds: &mut usize,
    pair: [Change; 2],
) {
    let [one, other] = pair;
    let turned = |(state, [first, second]): Outcome| (state, [second, first]);
    let serial = [
        outcome(
            &Round::new(harness, lab, rounds).await,
            [one, other],
            Order::OneAfterTheOther,
        )
        .await,
        turned(
            outcome(
                &Round::new(harness, lab, rounds).await,
                [other, one],
                Order::OneAfterTheOther,
            )
            .await,
        ),
    ];
    let mut alone = Vec::new();
    for change in pair {
        let round = Round::new(harness, lab, rounds).await;
        let plan = round.plan(change).await;
        round.apply(change, plan).await.unwrap();
        alone.push(round.state().await);
    }
    let untouched = Round::new(harness, lab, rounds).await.state().await;
    let is_allowed = |found: &Outcome| {
        let (state, done) = found;
        serial.contains(found)
            || match done {
                [true, true] => false,
                [true, false] => *state == alone[0],
                [false, true] => *state == alone[1],
                [false, false] => *state == untouched,
            }
    };
    let orders = [
        outcome(
            &Round::new(harness, lab, rounds).await,
            [one, other],
            Order::BothPlanned,
        )
        .await,
        turned(
            outcome(
                &Round::new(harness, lab, rounds).await,
                [other, one],
                Order::BothPlanned,
            )
            .await,
        ),
        outcome(
            &Round::new(harness, lab, rounds).await,
            [one, other],
            Order::AtOnce,
        )
        .await,
        outcome(
            &Round::new(harness, lab, rounds).await,
            [one, other],
            Order::AtOnce,
        )
        .await,
    ];
    for found in orders {
        assert!(
            is_allowed(&found),
            "{pair:?}: {found:?}, but {serial:?} one after the other"
        );
    }
}

/// Tests a change beside each of the changes.
async fn assert_serial_beside(harness: &impl DataHarness, change: Change, others: &[Change]) {
    let lab = Lab::empty(harness).await;
    let mut rounds = 0;
    for other in others {
        assert_serial(harness, &lab, &mut rounds, [change, *other]).await;
    }
}

crate::suite!(
    use data::interleavings as data_interleavings;

    /// A write under an execution beside any other change.
    async fn a_write_beside_any_change_is_before_or_after_it(harness: &Itself<impl DataHarness>) {
        assert_serial_beside(harness, Write, &ALL).await;
    }

    /// An update of a row beside any other change.
    async fn an_update_beside_any_change_is_before_or_after_it(harness: &Itself<impl DataHarness>) {
        assert_serial_beside(
            harness,
            Update,
            &[Update, Delete, Revert, Close, Cancel, Define],
        )
        .await;
    }

    /// A delete of a row beside any other change.
    async fn a_delete_beside_any_change_is_before_or_after_it(harness: &Itself<impl DataHarness>) {
        assert_serial_beside(harness, Delete, &[Delete, Revert, Close, Cancel, Define]).await;
    }

    /// A revert of an execution beside its end, another revert or a definition.
    async fn a_revert_beside_any_change_is_before_or_after_it(harness: &Itself<impl DataHarness>) {
        assert_serial_beside(harness, Revert, &[Revert, Close, Cancel, Define]).await;
    }

    /// Ends of an execution, and definitions, beside each other.
    async fn ends_and_definitions_beside_each_other_are_one_after_the_other(
        harness: &Itself<impl DataHarness>,
    ) {
        assert_serial_beside(harness, Close, &[Close, Cancel, Define]).await;
    }
);
