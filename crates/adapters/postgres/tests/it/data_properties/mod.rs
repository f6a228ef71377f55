//! Random schemas and random requests: PostgreSQL and the plain model in memory agree on
//! everything that a caller can see.
//!
//! `PROPTEST_CASES` asks for other and more cases than the few that are run always.

mod generate;
mod model;

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicU32, Ordering},
};

use labdata_domain::{
    data::{
        restore::OnConflict,
        revert::RevertReport,
        write::{Problem, WriteOutcome, WriteRequest, check},
    },
    ids::{ExecutionId, JobId},
    jobs::JobName,
};
use labdata_port_contracts::{
    Harness,
    data::lab::{DataHarness, Lab},
    given::at,
};
use labdata_ports::data::{
    Attribution, Restore, RevertError, RevertRequest, WriteError, WriteTarget,
};
use proptest::{
    collection::vec,
    prelude::any,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use serde_json::{Value, json};
use uuid::Uuid;

use self::{
    generate::{Choices, Known, Schema, Step},
    model::InMemory,
};
use crate::contracts::Postgres;

/// Number of cases unless `PROPTEST_CASES` is set.
const CASES: u32 = 16;

/// Result of a write as the caller sees it.
#[derive(Debug, PartialEq)]
enum Seen {
    Done(Value),
    /// Refused at these places.
    Problems(BTreeSet<String>),
    /// Refused for the whole request.
    Refused(Vec<String>),
}

impl Seen {
    fn of(result: Result<WriteOutcome, WriteError>) -> Self {
        match result {
            Ok(outcome) => Self::Done(display(&outcome)),
            Err(WriteError::Problems(problems)) => Self::of_problems(problems),
            Err(other) => panic!("{other:?}"),
        }
    }

    fn of_problems(problems: Vec<Problem>) -> Self {
        let places: Option<BTreeSet<String>> = problems
            .iter()
            .map(|problem| problem.path.clone())
            .collect();
        places.map_or_else(
            || {
                Self::Refused(
                    problems
                        .into_iter()
                        .map(|problem| problem.message)
                        .collect(),
                )
            },
            Self::Problems,
        )
    }
}

fn display(outcome: &WriteOutcome) -> Value {
    let tables: Vec<Value> = outcome
        .tables
        .iter()
        .map(|table| {
            let ids: Vec<String> = table.ids.iter().map(ToString::to_string).collect();
            let cascaded = table.cascade_deleted.clone().unwrap_or_default();
            let rows: Option<Vec<Value>> = table.rows.as_ref().map(|rows| {
                let read = |row: &labdata_domain::data::read::RowJson| {
                    serde_json::from_str(row.as_str()).expect("a row")
                };
                rows.iter().map(read).collect()
            });
            json!([
                table.table,
                table.created,
                table.updated,
                table.deleted,
                ids,
                cascaded,
                rows
            ])
        })
        .collect();
    let series: Vec<Value> = outcome
        .series
        .iter()
        .map(|series| {
            json!([
                series.table,
                series.parent.to_string(),
                series.points_written,
                series.points_replaced
            ])
        })
        .collect();
    json!({ "tables": tables, "series": series, "refs": outcome.refs,
        "recorded": outcome.execution.is_some() })
}

/// Ids that both sides are given alike.
fn id(kind: u64, number: u64) -> Uuid {
    Uuid::from_u64_pair(0x0190_d3a4_5b6c_7000 | kind, 0x8000_0000_0000_0000 | number)
}

async fn write(lab: &Lab, turn: u64, request: WriteRequest) -> Seen {
    let catalog = lab.tables().await;
    let checked = check(&request, &catalog);
    let responses = lab
        .data
        .look_up(lab.organization, checked.questions())
        .await;
    let mut next = turn * 1_000;
    let plan = checked.plan(&responses.expect("answers"), &mut || {
        next += 1;
        id(1, next)
    });
    let plan = match plan {
        Ok(plan) => plan,
        Err(problems) => return Seen::of_problems(problems),
    };
    let attribution = Attribution {
        target: WriteTarget::New {
            execution: execution(turn),
            job_name: JobName::parse("some job").expect("a name"),
            job: JobId::new(id(3, turn)),
        },
        source: None,
        user: lab.user,
        api_key: lab.api_key,
        rights: lab.rights.clone(),
        now: at(i64::try_from(turn).expect("a small number")),
    };
    Seen::of(lab.data.write(lab.organization, &plan, &attribution).await)
}

fn execution(turn: u64) -> ExecutionId {
    ExecutionId::new(id(2, turn))
}

/// Every other revert restores.
fn reverting(lab: &Lab, turn: u64, step: u64) -> RevertRequest {
    let undo = Attribution {
        target: WriteTarget::New {
            execution: ExecutionId::new(id(4, step)),
            job_name: JobName::parse("revert").expect("a name"),
            job: JobId::new(id(5, step)),
        },
        user: lab.user,
        api_key: lab.api_key,
        rights: lab.rights.clone(),
        now: at(900),
        source: None,
    };
    let restore = Restore {
        on_conflict: OnConflict::Skip,
        undo,
    };
    RevertRequest {
        now: at(900),
        restore: turn.is_multiple_of(2).then_some(restore),
        ..lab.reverting(execution(turn))
    }
}

/// All that a revert says but the words of its warnings.
fn reverted(result: Result<RevertReport, RevertError>) -> Value {
    match result {
        Ok(report) => json!([
            report.deleted_count,
            report.raws_deleted_count,
            report.skipped_count,
            report.restored_count,
            report.raws_restored_count
        ]),
        Err(RevertError::Blocked(blockers)) => {
            let named = blockers.into_iter();
            Value::from(
                named
                    .map(|blocker| json!([blocker.table, blocker.count, blocker.ids]))
                    .collect::<Vec<_>>(),
            )
        }
        Err(RevertError::Conflicts(conflicts)) => json!(conflicts.len()),
        Err(RevertError::OutOfReach(refusal)) => json!(refusal.to_string()),
        Err(RevertError::Port(error)) => json!(error.to_string()),
    }
}

async fn contents(lab: &Lab, schema: &Schema) -> Known {
    let mut all = Known::new();
    for table in &schema.tables {
        let mut rows = lab.find(&table.name, json!({})).await;
        rows.sort_by_cached_key(|row| format!("{row:?}"));
        all.insert(table.name.clone(), rows);
    }
    all
}

async fn prepare<H: DataHarness>(harness: &H, schema: &Schema) -> Lab {
    let lab = Lab::empty(harness).await;
    for table in &schema.tables {
        let defined = lab.define(table).await;
        assert!(defined.is_ok(), "{table:?}: {defined:?}");
    }
    lab
}

async fn agree(list: Vec<u16>, tally: &Tally) {
    let mut choices = Choices::new(list);
    let schema = Schema::generate(&mut choices);
    let (model, postgres) = (InMemory::fresh().await, Postgres::fresh().await);
    let model = prepare(&model, &schema).await;
    let postgres = prepare(&postgres, &schema).await;
    let mut history = Vec::new();
    let mut turn = 0;
    let mut known = Known::new();
    while !choices.are_used_up() {
        turn += 1;
        let step = schema.step(&mut choices, turn, &known);
        history.push(format!("{turn}: {step:?}"));
        let reported = || format!("{:#?}\n{}", schema.tables, history.join("\n"));
        match step {
            Step::Write(request) => {
                let expected = write(&model, turn, request.clone()).await;
                let found = write(&postgres, turn, request).await;
                tally.note(&expected);
                match (&expected, &found) {
                    // Which constraint breaks first is each side's own affair.
                    (Seen::Refused(_), Seen::Refused(_) | Seen::Problems(_))
                    | (Seen::Problems(_), Seen::Refused(_)) => {}
                    _ => assert_eq!(found, expected, "{}", reported()),
                }
            }
            Step::Revert(turn) => {
                let step = u64::try_from(history.len()).expect("a small number");
                let request = reverting(&model, turn, step);
                let expected = model.data.revert(model.organization, &request).await;
                let request = reverting(&postgres, turn, step);
                let found = postgres.data.revert(postgres.organization, &request).await;
                assert_eq!(reverted(found), reverted(expected), "{}", reported());
            }
        }
        let (expected, found) = (
            contents(&model, &schema).await,
            contents(&postgres, &schema).await,
        );
        assert_eq!(found, expected, "{}", reported());
        known = expected;
    }
}

/// Counts of results: a test with refusals only would test little.
#[derive(Default)]
struct Tally {
    done: AtomicU32,
    refused: AtomicU32,
}

impl Tally {
    fn note(&self, seen: &Seen) {
        let ended = match seen {
            Seen::Done(_) => &self.done,
            Seen::Problems(_) | Seen::Refused(_) => &self.refused,
        };
        ended.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn postgres_and_the_model_agree_on_random_requests_over_random_schemas() {
    let wanted = std::env::var_os("PROPTEST_CASES").is_some();
    let config = Config {
        failure_persistence: None,
        max_shrink_iters: if wanted { 60 } else { 0 },
        ..if wanted {
            Config::default()
        } else {
            Config::with_cases(CASES)
        }
    };
    let mut runner = if wanted {
        TestRunner::new(config)
    } else {
        // The same cases every time, so an unrelated change cannot fail here.
        let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        TestRunner::new_with_rng(config, rng)
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let tally = Tally::default();
    let outcome = runner.run(&vec(any::<u16>(), 400..2_000), |list| {
        runtime.block_on(agree(list, &tally));
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    let (done, refused) = (tally.done.into_inner(), tally.refused.into_inner());
    assert!(done * 2 > refused, "{done} done, {refused} refused");
}
