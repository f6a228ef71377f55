//! Contract of [`labdata_ports::data::DataStore`]: concurrent writes.

use std::collections::BTreeSet;

use futures::future::join_all;
use labdata_domain::{
    data::write::{Mode, TableWrite, WriteOutcome, WritePlan},
    executions::FinalStatus,
    page::PageRequest,
};
use labdata_ports::{data::WriteError, executions::CloseExecutionError, jobs::JobFilter};
use serde_json::{Value, json};

use crate::{
    Itself,
    data::lab::{
        DataHarness, Lab, assert_problems, insert, request, series, table_write, writing_time,
    },
    fixtures::Executions,
    given::at,
};

/// Applies plans concurrently, each under a new execution.
async fn race(lab: &Lab, plans: &[WritePlan]) -> Vec<Result<WriteOutcome, WriteError>> {
    join_all(
        plans
            .iter()
            .map(|plan| lab.apply(plan, Lab::new_execution("some job"), writing_time())),
    )
    .await
}

/// Fails unless exactly one write succeeded and the rest were refused with problems.
#[track_caller]
fn assert_one_won(results: Vec<Result<WriteOutcome, WriteError>>) {
    let (won, lost): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
    lost.into_iter().map(assert_problems).for_each(drop);
    assert_eq!(won.len(), 1, "exactly one write wins");
}

crate::suite!(
    use data::races as data_races;

    /// Independent writes all succeed.
    async fn writes_of_different_rows_all_succeed(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let mut plans = Vec::new();
        for writer in 0..6 {
            let rows: Vec<Value> = (0..50)
                .map(|row| json!({"name": format!("{writer}/{row}")}))
                .collect();
            plans.push(
                lab.plan(request([insert("sample", json!(rows))], []))
                    .await
                    .unwrap(),
            );
        }
        for result in race(&lab, &plans).await {
            result.unwrap();
        }
        assert_eq!(lab.count("sample").await, 300);
    }

    /// Of concurrent writes of one unique value, one succeeds; the rest write nothing.
    async fn of_writes_of_one_value_exactly_one_wins(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let mut plans = Vec::new();
        for writer in 0..6 {
            let rows = json!([{"name": format!("{writer}")}, {"name": "the one"}]);
            plans.push(
                lab.plan(request([insert("sample", rows)], []))
                    .await
                    .unwrap(),
            );
        }
        assert_one_won(race(&lab, &plans).await);
        assert_eq!(lab.count("sample").await, 2);
    }

    /// Small writes that arrive together may share work, but neither a row, nor a refusal, nor an
    /// execution.
    async fn many_small_writes_each_get_their_own_answer(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        lab.insert("sample", json!([{"name": "taken"}])).await;
        let mut plans = Vec::new();
        for writer in 0..40 {
            let write = match writer % 4 {
                0 => insert("sample", json!([{ "name": "taken" }])),
                1 => insert("experiment", json!([{ "name": format!("{writer}") }])),
                2 => insert(
                    "sample",
                    json!([{ "name": format!("{writer}"), "volume": writer }]),
                ),
                _ => insert(
                    "sample",
                    json!([{ "name": format!("{writer}") }, { "name": format!("{writer}, too") }]),
                ),
            };
            plans.push(lab.plan(request([write], [])).await.unwrap());
        }
        // A first round makes the job; the second finds it.
        for result in race(&lab, &plans[..4]).await.into_iter().skip(1) {
            result.unwrap();
        }
        let results = race(&lab, &plans[4..]).await;
        let mut executions = BTreeSet::new();
        for (writer, result) in (4..).zip(results) {
            if writer % 4 == 0 {
                assert_problems(result);
                continue;
            }
            let outcome = result.unwrap();
            assert_eq!(
                outcome.tables[0].created,
                if writer % 4 == 3 { 2 } else { 1 }
            );
            assert_eq!(
                outcome.tables[0].ids.len(),
                if writer % 4 == 3 { 2 } else { 1 }
            );
            let execution = outcome.execution.unwrap();
            assert!(executions.insert(execution));
            let table = if writer % 4 == 1 {
                "experiment"
            } else {
                "sample"
            };
            let rows = lab
                .find(table, json!({ "name": format!("{writer}") }))
                .await;
            assert_eq!(rows.len(), 1, "{writer}");
            let by = &rows[0]["created_by_execution_id"];
            assert_eq!(by, &json!(execution));
        }
        // Each can be reverted separately.
        let some = *executions.first().unwrap();
        let before = lab.count("sample").await + lab.count("experiment").await;
        let report = lab.revert(some).await.unwrap();
        let after = lab.count("sample").await + lab.count("experiment").await;
        assert!(report.deleted_count > 0);
        assert_eq!(u64::try_from(before - after).unwrap(), report.deleted_count);
    }

    /// Of writes that insert the same unique values in opposite order, one succeeds and the rest get
    /// problems: the store resolves the deadlock.
    async fn writes_in_opposite_order_never_fail_for_it(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        for round in 0..3 {
            let one = || insert("sample", json!([{"name": format!("one {round}")}]));
            let two = || insert("experiment", json!([{"name": format!("two {round}")}]));
            let plans = [
                lab.plan(request([one(), two()], [])).await.unwrap(),
                lab.plan(request([two(), one()], [])).await.unwrap(),
            ];
            assert_one_won(race(&lab, &plans).await);
        }
        assert_eq!(
            (lab.count("sample").await, lab.count("experiment").await),
            (3, 3)
        );
    }

    /// Of concurrent changes of one row by writers that read it before, one succeeds; the rest are
    /// told that the row was changed.
    async fn of_changes_of_one_read_exactly_one_wins(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        lab.insert("sample", json!([{"id": "a", "name": "a"}]))
            .await;
        let read = lab.find("sample", json!({})).await.remove(0);
        let mut plans = Vec::new();
        for writer in 0..6 {
            let row = json!({"id": "a", "volume": writer, "_if_updated_at": read["updated_at"]});
            let write = table_write(Mode::Update, "sample", json!([row]));
            plans.push(lab.plan(request([write], [])).await.unwrap());
        }
        assert_one_won(race(&lab, &plans).await);
    }

    /// Concurrent updates of the same rows in opposite order all succeed.
    async fn updates_in_opposite_order_all_succeed(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        lab.insert(
            "sample",
            json!([{"id": "a", "name": "a"}, {"id": "b", "name": "b"}]),
        )
        .await;
        let set = |id: &str, volume: i32| {
            table_write(
                Mode::Update,
                "sample",
                json!([{"id": id, "volume": volume}]),
            )
        };
        let mut plans = Vec::new();
        for volume in 0..6 {
            let mut steps = [set("a", volume), set("b", volume)];
            if volume % 2 == 0 {
                steps.reverse();
            }
            plans.push(lab.plan(request(steps, [])).await.unwrap());
        }
        for result in race(&lab, &plans).await {
            result.unwrap();
        }
        let volumes = lab.column("sample", "volume").await;
        assert_eq!(
            volumes.first(),
            volumes.last(),
            "one write's values stand, not a mixture"
        );
    }

    /// Writes of the same rows in many orders all succeed, and one write's values stand.
    async fn writes_of_the_same_rows_in_many_orders_all_succeed(
        harness: &Itself<impl DataHarness>,
    ) {
        let lab = Lab::with_tables(harness).await;
        let ids: Vec<String> = (0..6).map(|id| id.to_string()).collect();
        let rows = ids.iter().map(|id| json!({"id": id, "name": id}));
        lab.insert("sample", rows.collect()).await;
        let mut plans = Vec::new();
        for writer in 0..5_usize {
            let mut order = ids.clone();
            order.rotate_left(writer);
            if writer % 2 == 0 {
                order.reverse();
            }
            let steps = order.iter().map(|id| {
                let row = json!([{"id": id, "volume": writer}]);
                table_write(Mode::Update, "sample", row)
            });
            plans.push(lab.plan(request(steps, [])).await.unwrap());
        }
        for result in race(&lab, &plans).await {
            result.unwrap();
        }
        let volumes = lab.column("sample", "volume").await;
        assert_eq!(volumes.first(), volumes.last(), "{volumes:?}");
    }

    /// Concurrent upserts of a missing row create it once: the rest update it or are refused because
    /// the value is taken.
    async fn upserts_of_one_row_create_it_once(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let mut plans = Vec::new();
        for volume in 0..6 {
            let mut write = table_write(
                Mode::Upsert,
                "sample",
                json!([{"name": "a", "volume": volume}]),
            );
            write.key = Some(vec!["name".to_owned()]);
            plans.push(lab.plan(request([write], [])).await.unwrap());
        }
        let mut created = 0;
        for result in race(&lab, &plans).await {
            match result {
                Ok(outcome) => created += outcome.tables.first().unwrap().created,
                problems => drop(assert_problems(problems)),
            }
        }
        assert_eq!((created, lab.count("sample").await), (1, 1));
    }

    /// Upserts by a key that no constraint makes unique create its row once as well: all but the first update it.
    async fn upserts_by_a_key_that_is_not_unique_create_it_once(
        harness: &Itself<impl DataHarness>,
    ) {
        let lab = Lab::with_tables(harness).await;
        let upsert = |table: &str, key: &str, rows: Vec<Value>| TableWrite {
            key: Some(vec![key.to_owned()]),
            ..table_write(Mode::Upsert, table, json!(rows))
        };
        let mut plans = Vec::new();
        for writer in 0..8 {
            // Some of many keys, which are not locked one by one.
            let others = if writer % 3 == 0 { 70 } else { 1 };
            let rows = (0..=others).map(|row| {
                let note = if row == 0 {
                    "shared".to_owned()
                } else {
                    format!("{writer}/{row}")
                };
                json!({"name": format!("{writer}/{row}"), "note": note})
            });
            let operation = vec![json!({"name": "shared"})];
            let writes = [
                upsert("sample", "note", rows.collect()),
                upsert("operation", "name", operation),
            ];
            plans.push(lab.plan(request(writes, [])).await.unwrap());
        }
        for result in race(&lab, &plans).await {
            result.unwrap();
        }
        for (table, column) in [("sample", "note"), ("operation", "name")] {
            let rows = lab.find(table, json!({ column: "shared" })).await;
            assert_eq!(rows.len(), 1, "{table}");
        }
    }

    /// Of series that replace each other, one stands whole, and every point is counted once.
    async fn series_of_one_parent_never_mix(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        lab.insert("sample", json!([{"id": "a", "name": "a"}]))
            .await;
        let mut plans = Vec::new();
        for writer in 1..=6_usize {
            let columns = json!({"time": vec![writer; writer * 10]});
            plans.push(
                lab.plan(request([], [series("curve", json!("a"), columns)]))
                    .await
                    .unwrap(),
            );
        }
        let (mut written, mut replaced) = (0, 0);
        for result in race(&lab, &plans).await {
            let outcome = result.unwrap().series.remove(0);
            written += outcome.points_written;
            replaced += outcome.points_replaced;
        }
        let mut times: Vec<f64> = lab
            .column("curve", "time")
            .await
            .iter()
            .filter_map(Value::as_f64)
            .collect();
        assert_eq!(u64::try_from(times.len()).unwrap(), written - replaced);
        let points = times.len();
        times.dedup();
        let expected = f64::from(u32::try_from(points / 10).unwrap());
        assert_eq!(times, [expected], "one writer's points stand");
    }

    /// Writes that name a job that is missing end with one job.
    async fn a_missing_job_is_created_once(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let mut plans = Vec::new();
        for writer in 0..6 {
            let rows = json!([{"name": format!("{writer}")}]);
            plans.push(
                lab.plan(request([insert("sample", rows)], []))
                    .await
                    .unwrap(),
            );
        }
        for result in race(&lab, &plans).await {
            result.unwrap();
        }
        let all = PageRequest {
            limit: None,
            after: None,
        };
        let jobs = lab
            .jobs
            .list(lab.organization, &JobFilter::default(), all)
            .await
            .unwrap();
        assert_eq!(jobs.items.len(), 1);
    }

    /// A write is either recorded before the execution closes, or refused because it has closed.
    async fn a_write_and_a_close_agree_on_what_came_first(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        for round in 0..5 {
            let open = harness.execution(lab.organization, at(0), None).await;
            let name = format!("round {round}");
            let write = lab.write_under(
                open.id,
                request([insert("sample", json!([{ "name": name }]))], []),
            );
            let close =
                lab.executions
                    .close(lab.organization, open.id, FinalStatus::Completed, at(100));
            let (written, closed): (_, Result<_, CloseExecutionError>) =
                futures::join!(write, close);
            closed.unwrap();
            let rows = lab.find("sample", json!({ "name": name })).await.len();
            match written {
                Ok(_) => assert_eq!(rows, 1),
                Err(WriteError::ExecutionEnded(_)) => assert_eq!(rows, 0),
                Err(other) => panic!("{other:?}"),
            }
        }
    }

    /// A revert and a write that references what it deletes: one of them is refused, and no
    /// reference ever points at nothing.
    async fn a_parent_is_not_reverted_under_a_new_reference(harness: &Itself<impl DataHarness>) {
        use labdata_ports::data::RevertError;

        let lab = Lab::with_tables(harness).await;
        for round in 0..5 {
            let id = format!("sample {round}");
            let execution = lab.insert("sample", json!([{"id": id, "name": id}])).await;
            let rows = insert("measurement", json!([{ "sample": id }]));
            let plan = lab.plan(request([rows], [])).await.unwrap();
            let write = lab.apply(&plan, Lab::new_execution("some job"), writing_time());
            let (written, reverted) = futures::join!(write, lab.revert(execution));
            let measurements = lab.find("measurement", json!({ "sample": id })).await.len();
            let samples = lab.find("sample", json!({ "id": id })).await.len();
            match (written, reverted) {
                (Ok(_), Err(RevertError::Blocked(_))) => {
                    assert_eq!((samples, measurements), (1, 1));
                }
                (Err(WriteError::Problems(_)), Ok(_)) => {
                    assert_eq!((samples, measurements), (0, 0));
                }
                other => panic!("{other:?}"),
            }
        }
    }
);
