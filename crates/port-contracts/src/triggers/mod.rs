//! Contract of [`TriggerStore`](labdata_ports::triggers::TriggerStore).

pub mod backfills;
pub mod events;
pub mod lab;
pub(crate) mod recorded;
pub mod schedules;

use std::collections::BTreeSet;

use futures::{StreamExt, future::join_all, stream};
use labdata_domain::{
    executions::FinalStatus,
    files::File,
    ids::{FileId, JobId},
    jobs::Job,
    triggers::{Category, Trigger},
};
use serde_json::json;

use crate::{
    files::{confirmed, of},
    given::{self, at},
    triggers::lab::{TriggersLab, file_of, jobs_of, respond, run_of},
};

crate::suite!(
    use triggers;

    /// A matching file queues one run of the current version with default parameters and the file.
    async fn a_matching_file_is_one_run_in_the_name_of_who_set_the_trigger(lab: &TriggersLab) {
        let conditions = json!({"file_extensions": ["csv"]});
        let job = lab.job("parse", Category::FileUploaded, conditions).await;
        let file = lab.file("plate.csv", None).await;
        assert_eq!(lab.act().await, 1);
        assert_eq!(lab.act().await, 0);
        let runs = lab.claim().await;
        assert_eq!(runs.len(), 1);
        assert_eq!(runs[0].execution.job_id, job.id);
        assert_eq!(runs[0].started_by, lab.ada.id);
        let id = runs[0].execution.id;
        let starters = lab.executions.starters(lab.ours, &[id]).await;
        let trigger = job.trigger.as_ref().map(|trigger| trigger.id);
        assert_eq!(starters.unwrap()[&id].trigger, trigger);
        let run = run_of(&runs[0].execution);
        assert_eq!((run.script_version, run.trigger_file), (1, Some(file)));
        assert_eq!((run.source, run.parameters.len()), (None, 1));
    }

    /// A file without a matching trigger starts nothing, even if a trigger is set later.
    async fn files_that_do_not_match_are_forgotten(lab: &TriggersLab) {
        let other = lab.instrument(lab.ours, "other").await;
        let trigger = Trigger {
            instrument: Some(other.id),
            ..given::trigger(Category::FileUploaded, json!({}), lab.ada.id)
        };
        lab.job_of(&lab.ada, "of another instrument", trigger).await;
        let large = json!({"min_size_kb": 3});
        lab.job("of large files", Category::FileUploaded, large)
            .await;
        lab.file("plate.csv", None).await;
        assert_eq!(lab.act().await, 0);
        lab.job("too late", Category::FileUploaded, json!({})).await;
        assert_eq!(lab.act().await, 0);
    }

    /// A trigger does not fire while its job is archived, nor for events of another organization.
    async fn archived_jobs_and_other_organizations_do_not_run(lab: &TriggersLab) {
        let trigger = given::trigger(Category::FileUploaded, json!({}), lab.eve.id);
        lab.job_of(&lab.eve, "theirs", trigger).await;
        let job = lab.job("archived", Category::FileUploaded, json!({})).await;
        let job = Job {
            archived: true,
            ..job
        };
        let job = lab.change(&job).await;
        lab.file("plate.csv", None).await;
        assert_eq!(lab.act().await, 0);
        let job = Job {
            archived: false,
            ..job
        };
        lab.change(&job).await;
        assert_eq!(lab.act().await, 0);
        lab.file("plate 2.csv", None).await;
        assert_eq!(lab.act().await, 1);
    }

    /// Several jobs may wait for the same file.
    async fn every_job_that_waits_for_a_file_runs(lab: &TriggersLab) {
        let mut expected = BTreeSet::new();
        for name in ["one", "two", "three"] {
            let job = lab.job(name, Category::FileUploaded, json!({})).await;
            expected.insert(job.id);
        }
        lab.file("plate.csv", None).await;
        assert_eq!(lab.act().await, 3);
        assert_eq!(jobs_of(&lab.claim().await), expected);
    }

    /// The event of a deleted file starts no run and does not block later events.
    async fn a_deleted_file_triggers_nothing(lab: &TriggersLab) {
        lab.job("parse", Category::FileUploaded, json!({})).await;
        let deleted = lab.file("gone.csv", None).await;
        let stays = lab.file("stays.csv", None).await;
        lab.files.delete(lab.ours, deleted, at(50)).await.unwrap();
        assert_eq!(lab.act().await, 1);
        assert_eq!(file_of(&lab.claim().await[0]), Some(stays));
    }

    /// Each of many files confirmed concurrently starts one run, even with several workers.
    async fn of_a_thousand_files_each_is_one_run_with_two_workers(lab: &TriggersLab) {
        const FILES: usize = 1_000;
        let odd = json!({"file_name_pattern": "*1.csv"});
        lab.job("parse", Category::FileUploaded, odd).await;
        let reader = lab.reader().await;
        let files: Vec<File> = (0..FILES)
            .map(|number| {
                let path = format!("plate {number}.csv");
                confirmed(&path, of(Some(reader), None), at(1))
            })
            .collect();
        let upload = async {
            let uploads = files.iter().map(|file| lab.store(file));
            stream::iter(uploads).buffer_unordered(4).count().await;
        };
        let work = async || {
            let (mut handled, mut runs) = (0, 0);
            while handled == 0 || runs < 1 {
                let fired = lab.triggers.act_on_events(20, &respond).await.unwrap();
                handled += fired.handled;
                runs += fired.runs;
            }
            (handled, runs)
        };
        let ((), one, two) = futures::join!(upload, work(), work());
        let (mut handled, mut runs) = (one.0 + two.0, one.1 + two.1);
        while usize::try_from(handled).unwrap() < FILES {
            let acts = (0..2).map(|_| lab.triggers.act_on_events(20, &respond));
            for fired in join_all(acts).await {
                let fired = fired.unwrap();
                handled += fired.handled;
                runs += fired.runs;
            }
        }
        assert_eq!(usize::try_from(handled).unwrap(), FILES);
        let expected: BTreeSet<FileId> = files
            .iter()
            .filter(|file| file.path.as_str().ends_with("1.csv"))
            .map(|file| file.id)
            .collect();
        let claimed = lab.claim().await;
        assert_eq!(usize::try_from(runs).unwrap(), expected.len());
        assert_eq!(claimed.len(), expected.len());
        let ran: BTreeSet<FileId> = claimed.iter().filter_map(file_of).collect();
        assert_eq!(ran, expected);
    }

    /// The effects of a worker that dies are all or nothing; the next one does the rest.
    async fn what_is_given_up_halfway_is_done_by_the_next(lab: &TriggersLab) {
        lab.job("parse", Category::FileUploaded, json!({})).await;
        let mut expected = BTreeSet::new();
        for number in 0..12 {
            expected.insert(lab.file(&format!("plate {number}.csv"), None).await);
        }
        for steps in 0..40 {
            let mut act = lab.triggers.act_on_events(2, &respond);
            for _ in 0..steps {
                // Yields, so that responses of the store arrive.
                if futures::poll!(&mut act).is_ready() {
                    break;
                }
                let mut turn = false;
                futures::future::poll_fn(|context| {
                    if std::mem::replace(&mut turn, true) {
                        return std::task::Poll::Ready(());
                    }
                    context.waker().wake_by_ref();
                    std::task::Poll::Pending
                })
                .await;
            }
            drop(act);
        }
        lab.act().await;
        let claimed = lab.claim().await;
        assert_eq!(claimed.len(), expected.len());
        let ran: BTreeSet<FileId> = claimed.iter().filter_map(file_of).collect();
        assert_eq!(ran, expected);
    }

    /// Each output file of an ended execution starts one run, which names the execution.
    async fn each_output_of_an_execution_is_a_run_that_knows_its_source(lab: &TriggersLab) {
        let source = lab.job("source", Category::FileUploaded, json!({})).await;
        let conditions = json!({"source_job_id": source.id});
        let next = lab.job("next", Category::JobCompleted, conditions).await;
        lab.file("plate.csv", None).await;
        assert_eq!(lab.act().await, 1);
        let first = lab.claim().await.remove(0);
        let mut outputs = BTreeSet::new();
        for name in ["a.csv", "b.csv"] {
            outputs.insert(lab.file(name, Some(first.execution.id)).await);
        }
        lab.finish(&first, 0).await;
        assert_eq!(lab.act().await, 2);
        let runs = lab.claim().await;
        assert_eq!(jobs_of(&runs), BTreeSet::from([next.id]));
        let files: BTreeSet<FileId> = runs.iter().filter_map(file_of).collect();
        assert_eq!(files, outputs);
        for run in &runs {
            assert_eq!(run_of(&run.execution).source, Some(first.execution.id));
        }
    }

    /// An ended execution without output files starts one run without a file.
    async fn an_execution_without_output_is_one_run_without_file(lab: &TriggersLab) {
        let source = lab.job("source", Category::FileUploaded, json!({})).await;
        let conditions = json!({"source_job_id": source.id});
        lab.job("next", Category::JobCompleted, conditions).await;
        lab.file("plate.csv", None).await;
        lab.act().await;
        let first = lab.claim().await.remove(0);
        lab.finish(&first, 0).await;
        assert_eq!(lab.act().await, 1);
        let runs = lab.claim().await;
        let run = run_of(&runs[0].execution);
        assert_eq!(
            (run.trigger_file, run.source),
            (None, Some(first.execution.id))
        );
    }

    /// The default status is completed.
    async fn only_the_statuses_that_are_asked_for_count(lab: &TriggersLab) {
        let source = lab.job("source", Category::FileUploaded, json!({})).await;
        let by_default = json!({"source_job_id": source.id});
        let completed = lab
            .job("completed", Category::JobCompleted, by_default)
            .await;
        let conditions = json!({"source_job_id": source.id, "statuses": ["failed", "cancelled"]});
        let failed = lab.job("failed", Category::JobCompleted, conditions).await;
        for (code, expected) in [(0, completed.id), (1, failed.id)] {
            lab.file(&format!("plate {code}.csv"), None).await;
            lab.act().await;
            let first = lab.claim().await.remove(0);
            lab.finish(&first, code).await;
            assert_eq!(lab.act().await, 1);
            assert_eq!(jobs_of(&lab.claim().await), BTreeSet::from([expected]));
        }
    }

    /// Every end fires triggers: closed by the script, cancelled, or timed out.
    async fn an_execution_that_ends_elsewhere_fires_as_a_run_does(lab: &TriggersLab) {
        let mut elsewhere = Vec::new();
        for _ in 0..3 {
            elsewhere.push(lab.execution(lab.ours, at(0), Some(1)).await);
        }
        let sources: BTreeSet<JobId> = elsewhere.iter().map(|it| it.job_id).collect();
        for (number, source) in sources.iter().enumerate() {
            let conditions = json!({
                "source_job_id": source, "statuses": ["completed", "cancelled", "failed"],
            });
            let name = format!("next {number}");
            lab.job(&name, Category::JobCompleted, conditions).await;
        }
        let output = lab.file("a.csv", Some(elsewhere[0].id)).await;
        for now in [at(3), at(4)] {
            let status = FinalStatus::Completed;
            let closed = lab.executions.close(lab.ours, elsewhere[0].id, status, now);
            closed.await.unwrap();
        }
        let cancelled = lab
            .executions
            .cancel(lab.ours, elsewhere[1].id, at(4))
            .await;
        cancelled.unwrap();
        let overdue = lab.executions.fail_overdue(at(100), 10).await.unwrap();
        assert_eq!(overdue.len(), 1);
        lab.act().await;
        let runs = lab.claim().await;
        let mut followed: Vec<_> = runs
            .iter()
            .map(|run| (run_of(&run.execution).source, file_of(run)))
            .collect();
        followed.sort_unstable();
        let mut expected: Vec<_> = elsewhere.iter().map(|it| (Some(it.id), None)).collect();
        expected[0].1 = Some(output);
        expected.sort_unstable();
        assert_eq!(followed, expected);
    }

    /// A job is not triggered by its own files, directly or through other jobs.
    async fn jobs_that_trigger_each_other_come_to_an_end(lab: &TriggersLab) {
        let one = lab.job("one", Category::FileUploaded, json!({})).await;
        let two = lab.job("two", Category::FileUploaded, json!({})).await;
        lab.file("plate.csv", None).await;
        let mut ran = Vec::new();
        for round in 0.. {
            if lab.act().await == 0 {
                break;
            }
            assert!(round < 10, "it goes on and on: {ran:?}");
            for run in lab.claim().await {
                ran.push(run.execution.job_id);
                let output = format!("of {}.csv", run.execution.id);
                lab.file(&output, Some(run.execution.id)).await;
                lab.finish(&run, 0).await;
            }
        }
        ran.sort_unstable();
        let mut expected = vec![one.id, one.id, two.id, two.id];
        expected.sort_unstable();
        // Each runs on the plate and on the file that the other made from it.
        assert_eq!(ran, expected);
    }

    /// Earlier subscribers are notified of an event.
    async fn subscribers_are_signaled_when_an_event_is_recorded(lab: &TriggersLab) {
        lab.job("parse", Category::FileUploaded, json!({})).await;
        let mut wakeups = lab.triggers.subscribe();
        lab.file("plate.csv", None).await;
        while lab.act().await == 0 {
            wakeups.next().await;
        }
    }
);
