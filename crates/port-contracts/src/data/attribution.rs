//! Contract of [`labdata_ports::data::DataStore`]: the execution of a write, and tenancy.

use labdata_domain::{
    data::write::WriteRequest,
    executions::{ExecutionState, FinalStatus, Origin},
    files::Attribution,
    ids::ExecutionId,
    jobs::Job,
    page::PageRequest,
    storage::StorageQuota,
    triggers::Category,
};
use labdata_ports::{
    data::{SourceFile, WriteError, WriteTarget},
    files::FileRepository,
    jobs::JobFilter,
    triggers::TriggerStore,
};
use serde_json::{Value, json};

use crate::{
    Itself, Subject,
    assertions::assert_not_found,
    data::{
        lab::{DataHarness, Lab, insert, labelled_sample, request, writing_time},
        refusals::assert_nothing_written,
    },
    files::confirmed,
    fixtures::{Executions, Jobs},
    given::{self, at},
    triggers::lab::respond,
};

/// Fails unless a write under the execution is refused because it ended so, and nothing written.
async fn assert_ended(lab: &Lab, execution: ExecutionId, how: &str) {
    let rows = insert("sample", json!([{"name": "late"}]));
    match lab.write_under(execution, request([rows], [])).await {
        Err(WriteError::ExecutionEnded(text)) => assert!(text.contains(how), "{text}"),
        other => panic!("expected a refusal, got {other:?}"),
    }
    assert_eq!(lab.count("sample").await, 0);
}

crate::suite!(
    use data::attribution as data_attribution;

    /// A write without an execution gets a new one, completed at the time of the write.
    async fn a_new_execution_is_completed_with_the_write(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let plan = lab
            .plan(request([insert("sample", json!([{"name": "a"}]))], []))
            .await
            .unwrap();
        let target = Lab::new_execution("nightly import");
        let outcome = lab
            .apply(&plan, target.clone(), writing_time())
            .await
            .unwrap();
        let WriteTarget::New {
            execution: id,
            job: job_id,
            ..
        } = target
        else {
            panic!("not new")
        };
        assert_eq!(outcome.execution, Some(id));
        let execution = lab.execution(id).await;
        assert_eq!(
            execution.state,
            ExecutionState::Completed { at: writing_time() }
        );
        assert_eq!(execution.origin, Origin::DataWrite);
        assert_eq!(
            (execution.created_at, execution.started_at),
            (writing_time(), Some(writing_time()))
        );
        assert_eq!(
            (execution.job_id, execution.job_name.as_str()),
            (job_id, "nightly import")
        );
        let job = lab.jobs.get(lab.organization, job_id).await.unwrap();
        assert_eq!((job.name.as_str(), job.archived), ("nightly import", false));
    }

    /// Holds for writes of any size.
    async fn a_new_execution_is_started_by_the_writers_key(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let one = lab.insert("sample", json!([{"name": "a"}])).await;
        let both = [
            insert("sample", json!([{"name": "b"}])),
            insert("experiment", json!([{"name": "growth"}])),
        ];
        let outcome = lab.write(request(both, [])).await.unwrap();
        let ids = [one, outcome.execution.unwrap()];
        let starters = lab.executions.starters(lab.organization, &ids).await;
        for starter in starters.unwrap().into_values() {
            assert_eq!(starter.author.user.id, lab.user);
            assert_eq!(starter.author.api_key.unwrap().id, lab.api_key);
        }
    }

    /// An existing job of that name is used, even if its id differs.
    async fn the_job_is_created_only_when_missing(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let job = harness.job(lab.organization, "nightly import").await;
        for name in ["a", "b"] {
            let rows = insert("sample", json!([{ "name": name }]));
            let plan = lab.plan(request([rows], [])).await.unwrap();
            let target = Lab::new_execution("nightly import");
            let outcome = lab.apply(&plan, target, writing_time()).await.unwrap();
            let execution = lab.execution(outcome.execution.unwrap()).await;
            assert_eq!(execution.job_id, job.id);
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
        assert_eq!(jobs.items, [job]);
    }

    /// A job that waits for executions of another one runs once for each execution that a write
    /// completes, and not for those of other jobs.
    async fn a_new_execution_triggers_what_waits_for_its_job(
        harness: &Itself<impl DataHarness + Subject<dyn TriggerStore>>,
    ) {
        let lab = Lab::with_tables(harness).await;
        let source = harness.job(lab.organization, "nightly import").await;
        let conditions = json!({ "source_job_id": source.id });
        let waiting = Job {
            version_number: Some(1),
            trigger: Some(given::trigger(Category::JobCompleted, conditions, lab.user)),
            ..given::job("summary", at(0))
        };
        let script = given::script(1, "pass\n", lab.user);
        let added = lab.jobs.add(lab.organization, &waiting, &script).await;
        added.unwrap();
        let triggers = Subject::<dyn TriggerStore>::subject(harness);
        for (name, job, runs) in [
            ("a", "nightly import", 1),
            ("b", "nightly import", 1),
            ("c", "another job", 0),
        ] {
            let rows = insert("sample", json!([{ "name": name }]));
            let plan = lab.plan(request([rows], [])).await.unwrap();
            let target = Lab::new_execution(job);
            lab.apply(&plan, target, writing_time()).await.unwrap();
            let fired = triggers.act_on_events(20, &respond).await.unwrap();
            // The end of an execution that no trigger waits for is no event.
            assert_eq!((fired.handled, fired.runs), (runs, runs), "{name}");
        }
    }

    /// The file that rows come from is recorded with them under the execution, or not at all: not
    /// with a dry run, with a refused write, or where the quota has no room for it.
    async fn a_source_file_is_recorded_with_its_write(
        harness: &Itself<impl DataHarness + Subject<dyn FileRepository>>,
    ) {
        let lab = Lab::with_tables(harness).await;
        let files = Subject::<dyn FileRepository>::subject(harness);
        let write = async |request: WriteRequest, quota: StorageQuota| {
            let plan = lab.plan(request).await.unwrap();
            let target = Lab::new_execution("Import");
            let owner = Attribution::new(None, Some(target.execution())).unwrap();
            let source = SourceFile {
                file: confirmed("plate.csv", owner, writing_time()),
                quota,
            };
            let id = source.file.id;
            let written = lab.apply_from(&plan, target, writing_time(), Some(source));
            (written.await, files.get(lab.organization, id).await)
        };
        let rows = |name: &str| request([insert("sample", json!([{ "name": name }]))], []);
        let unlimited = StorageQuota::UNLIMITED;
        let (written, file) = write(rows("a"), unlimited).await;
        let execution = file.unwrap().attribution.execution();
        assert_eq!(execution, written.unwrap().execution);
        let dry = WriteRequest {
            dry_run: true,
            ..rows("b")
        };
        let (written, file) = write(dry, unlimited).await;
        written.unwrap();
        assert_not_found(file);
        let (refused, file) = write(rows("a"), unlimited).await;
        assert!(
            matches!(refused, Err(WriteError::Problems(_))),
            "{refused:?}"
        );
        assert_not_found(file);
        let (refused, file) = write(rows("c"), StorageQuota::of_bytes(1)).await;
        let is_full = matches!(refused, Err(WriteError::InsufficientStorage(_)));
        assert!(is_full, "{refused:?}");
        assert_not_found(file);
        assert_eq!(lab.count("sample").await, 1);
    }

    /// Writes under an open execution are recorded under it and leave it as it is.
    async fn an_open_execution_stays_open(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let open = harness.execution(lab.organization, at(0), Some(60)).await;
        for name in ["a", "b"] {
            let rows = insert("sample", json!([{ "name": name }]));
            let outcome = lab.write_under(open.id, request([rows], [])).await.unwrap();
            assert_eq!(outcome.execution, Some(open.id));
        }
        assert_eq!(lab.execution(open.id).await, open);
        let by = lab.column("sample", "created_by_execution_id").await;
        assert_eq!(by, vec![json!(open.id.to_string()); 2]);
    }

    /// An execution that was closed, either way, accepts no write.
    async fn a_closed_execution_accepts_nothing(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        for (status, how) in [
            (FinalStatus::Completed, "completed"),
            (FinalStatus::Failed, "failed"),
        ] {
            let execution = harness.execution(lab.organization, at(0), None).await;
            lab.executions
                .close(lab.organization, execution.id, status, at(1))
                .await
                .unwrap();
            assert_ended(&lab, execution.id, how).await;
        }
    }

    /// An execution past its deadline accepts no write, even before the sweeper has failed it.
    async fn an_overdue_execution_accepts_nothing(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let execution = harness.execution(lab.organization, at(0), Some(1)).await;
        assert_ended(&lab, execution.id, "failed").await;
    }

    /// An id that no execution has is not found, and nothing is written.
    async fn an_unknown_execution_is_not_found(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let rows = insert("sample", json!([{"name": "a"}]));
        match lab
            .write_under(ExecutionId::new(given::uuid()), request([rows], []))
            .await
        {
            Err(WriteError::ExecutionNotFound) => {}
            other => panic!("expected ExecutionNotFound, got {other:?}"),
        }
        assert_nothing_written(&lab).await;
    }

    /// Another organization's open execution is answered like one that does not exist.
    async fn another_organizations_execution_is_not_found(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let other = Lab::named(harness, "another lab").await;
        let foreign = harness.execution(other.organization, at(0), None).await;
        let rows = insert("sample", json!([{"name": "a"}]));
        match lab.write_under(foreign.id, request([rows], [])).await {
            Err(WriteError::ExecutionNotFound) => {}
            other => panic!("expected ExecutionNotFound, got {other:?}"),
        }
        assert_nothing_written(&lab).await;
    }

    /// Rows of one organization are not read, found by id or lookup, or in conflict with those of
    /// another with tables of the same names.
    async fn another_organizations_rows_do_not_exist(harness: &Itself<impl DataHarness>) {
        let ours = Lab::named(harness, "ours").await;
        let theirs = Lab::named(harness, "theirs").await;
        ours.define_tables().await;
        theirs.define_tables().await;
        theirs
            .insert("sample", json!([{"id": "s1", "name": "a"}]))
            .await;
        theirs
            .insert("carrier", json!([{"id": "c1", "name": "plate"}]))
            .await;
        assert_eq!(ours.count("sample").await, 0);
        assert_eq!(ours.count("carrier").await, 0);
        let asked = json!([{"sample": "s1"}, {"sample": {"name": "a"}}]);
        let problems = ours
            .plan(request([insert("measurement", asked)], []))
            .await
            .unwrap_err();
        assert_eq!(problems.len(), 2);
        ours.insert("sample", json!([{"id": "s1", "name": "a", "note": "ours"}]))
            .await;
        ours.insert("carrier", json!([{"id": "c1", "name": "plate"}]))
            .await;
        assert_eq!(theirs.column("sample", "note").await, [Value::Null]);
    }

    /// A write of the maximum number of rows succeeds.
    async fn ten_thousand_rows_are_one_write(harness: &Itself<impl DataHarness>) {
        let lab = Lab::with_tables(harness).await;
        let samples: Vec<Value> = (0..2_000)
            .map(|number| labelled_sample(&format!("s{number}")))
            .collect();
        let measurements: Vec<Value> = (0..8_000)
            .map(|number| json!({"sample": format!("@s{}", number % 2_000), "value": number}))
            .collect();
        let writes = [
            insert("sample", json!(samples)),
            insert("measurement", json!(measurements)),
        ];
        let outcome = lab.write(request(writes, [])).await.unwrap();
        let created: Vec<u64> = outcome.tables.iter().map(|table| table.created).collect();
        assert_eq!((created, outcome.refs.len()), (vec![2_000, 8_000], 2_000));
        assert_eq!(
            lab.find("measurement", json!({"sample__name": "s1999"}))
                .await
                .len(),
            4
        );
        assert_eq!(
            lab.find("measurement", json!({"value__gte": 7_999}))
                .await
                .len(),
            1
        );
    }
);
