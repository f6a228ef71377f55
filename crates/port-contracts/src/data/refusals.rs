//! Contract of [`labdata_ports::data::DataStore`]: refused writes and dry runs.

use labdata_domain::{data::write::WriteRequest, scalar::DataType};
use labdata_ports::{data::WriteError, executions::ExecutionFilter};
use serde_json::json;

use crate::{
    Itself,
    catalog::definitions::{column, curated, sample},
    data::lab::{
        DataHarness, Lab, assert_problems, assert_problems_are, dangling, insert, labelled_sample,
        repeated, request, writing_time,
    },
    fixtures::Executions,
    given::at,
    paging::ALL,
};

/// Fails unless the lab is as before anything was written.
pub(crate) async fn assert_nothing_written(lab: &Lab) {
    for table in ["sample", "measurement", "curve", "job", "job_execution"] {
        assert_eq!(lab.count(table).await, 0, "{table}");
    }
    let executions = lab
        .executions
        .list(lab.organization, &ExecutionFilter::default(), ALL)
        .await
        .unwrap();
    assert_eq!(executions.items, []);
}

crate::suite!(
    use data::refusals as data_refusals;

    /// A duplicate of a unique value is one problem without path that names table, constraint and value.
    async fn a_repeated_value_is_a_problem_of_the_request(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        lab.insert("sample", json!([{"name": "taken name"}])).await;
        for rows in [
            json!([{"name": "taken name"}]),
            json!([{"name": "twice"}, {"name": "twice"}]),
        ] {
            let value = rows[0]["name"].as_str().unwrap().to_owned();
            assert_problems_are(
                lab.write(request([insert("sample", rows)], [])).await,
                &[repeated("sample", "sample_name_key", "name", &value)],
            );
        }
        assert_eq!(lab.count("sample").await, 1);
    }

    /// Columns that must be unique together may repeat one by one, and with null, but not together.
    async fn a_repeated_group_of_values_is_a_problem(harness: &Itself<impl DataHarness>) {
        let lab = Lab::empty(harness).await;
        let mut well = curated(
            "well",
            vec![
                column("plate", DataType::String),
                column("place", DataType::Integer),
            ],
        );
        well.unique_together = vec![vec!["plate".to_owned(), "place".to_owned()]];
        lab.define(&well).await.unwrap();
        let rows = json!([
            {"plate": "p", "place": 1}, {"plate": "p", "place": 2}, {"plate": "q", "place": 1},
            {"plate": "p", "place": null}, {"plate": "p", "place": null},
        ]);
        lab.insert("well", rows).await;
        let again = insert(
            "well",
            json!([{"plate": "q", "place": 2}, {"plate": "p", "place": 2}]),
        );
        assert_problems_are(
            lab.write(request([again], [])).await,
            &[repeated(
                "well",
                "well_plate_place_key",
                "plate, place",
                "p, 2",
            )],
        );
        assert_eq!(lab.count("well").await, 5);
    }

    /// A given key that exists is a problem, and the existing row is unchanged.
    async fn a_repeated_key_is_a_problem(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        lab.insert("sample", json!([{"id": "s1", "name": "a"}]))
            .await;
        let again = insert("sample", json!([{"id": "s1", "name": "b"}]));
        assert_problems_are(
            lab.write(request([again], [])).await,
            &[repeated("sample", "sample_pkey", "id", "s1")],
        );
        assert_eq!(lab.column("sample", "name").await, ["a"]);
    }

    /// A row that is deleted between planning and applying the write is a problem.
    async fn a_reference_to_a_row_that_went_is_a_problem(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let execution = lab
            .insert("sample", json!([{"id": "s1", "name": "a"}]))
            .await;
        let plan = lab
            .plan(request(
                [insert("measurement", json!([{"sample": "s1"}]))],
                [],
            ))
            .await
            .unwrap();
        lab.revert(execution).await.unwrap();
        let target = Lab::new_execution("some job");
        assert_problems_are(
            lab.apply(&plan, target, writing_time()).await,
            &[dangling(
                "measurement",
                "measurement_sample_id_fkey",
                "sample_id",
                "s1",
            )],
        );
        assert_eq!(lab.count("measurement").await, 0);
    }

    /// When one row of many fails, none of any table is there, no execution and no job.
    async fn a_failed_write_leaves_nothing_behind(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let writes = [
            insert(
                "sample",
                json!([labelled_sample("a"), labelled_sample("b")]),
            ),
            insert("measurement", json!([{"sample": "@a", "value": 1}])),
            insert("sample", json!([{"name": "c"}, {"name": "a"}])),
        ];
        let curve = crate::data::lab::series("curve", json!("@b"), json!({"time": [0, 1, 2]}));
        assert_problems(lab.write(request(writes, [curve])).await);
        assert_nothing_written(&lab).await;
        lab.insert("sample", json!([{"name": "a"}])).await;
    }

    /// A dry run counts and responds as the write would, without an execution, and changes nothing.
    async fn a_dry_run_answers_alike_and_leaves_nothing_behind(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let dry = WriteRequest {
            dry_run: true,
            return_rows: true,
            ..request(
                [
                    insert("sample", json!([{"_ref": "a", "id": "s1", "name": "a"}])),
                    insert("measurement", json!([{"sample": "@a"}, {"sample": "@a"}])),
                ],
                [crate::data::lab::series(
                    "curve",
                    json!("@a"),
                    json!({"time": [0, 1]}),
                )],
            )
        };
        let outcome = lab.write(dry.clone()).await.unwrap();
        assert_eq!(outcome.execution, None);
        assert_eq!(outcome.refs.get("a").map(String::as_str), Some("s1"));
        let created: Vec<u64> = outcome.tables.iter().map(|table| table.created).collect();
        assert_eq!(created, [1, 2]);
        assert!(
            outcome
                .tables
                .iter()
                .all(|table| table.rows.as_ref().is_some_and(|rows| !rows.is_empty()))
        );
        assert_eq!(outcome.series.first().unwrap().points_written, 2);
        assert_nothing_written(&lab).await;
        let open = harness.execution(lab.organization, at(0), None).await;
        let outcome = lab.write_under(open.id, dry).await.unwrap();
        assert_eq!(outcome.execution, None);
        assert_eq!(lab.execution(open.id).await, open);
        assert_eq!(lab.count("sample").await, 0);
    }

    /// A dry run also checks the rules that only the store can check.
    async fn a_dry_run_finds_the_problems_of_a_write(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        lab.insert("sample", json!([{"name": "a"}])).await;
        let again = request([insert("sample", json!([{"name": "a"}]))], []);
        assert_problems(
            lab.write(WriteRequest {
                dry_run: true,
                ..again
            })
            .await,
        );
        let fresh = request([insert("sample", json!([{"name": "b"}]))], []);
        let fresh = WriteRequest {
            dry_run: true,
            ..fresh
        };
        let closed = harness.execution(lab.organization, at(0), Some(1)).await;
        match lab.write_under(closed.id, fresh).await {
            Err(WriteError::ExecutionEnded(_)) => {}
            other => panic!("expected a refusal, got {other:?}"),
        }
    }

    /// A plan that was made before tables changed is refused, and nothing of it is written.
    async fn a_plan_for_other_tables_is_refused(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let plan = lab
            .plan(request([insert("sample", json!([{"name": "a"}]))], []))
            .await
            .unwrap();
        let mut wider = sample();
        wider.columns.push(column("ph", DataType::Float));
        lab.define(&wider).await.unwrap();
        match lab
            .apply(&plan, Lab::new_execution("some job"), writing_time())
            .await
        {
            Err(WriteError::CatalogChanged) => {}
            other => panic!("expected CatalogChanged, got {other:?}"),
        }
        assert_nothing_written(&lab).await;
    }
);
