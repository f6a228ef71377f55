//! Contract of [`TriggerStore`](labdata_ports::triggers::TriggerStore): backfills.

use std::collections::BTreeSet;

use futures::future::join;
use labdata_domain::{
    ids::{FileId, JobId},
    storage::StorageQuota,
    triggers::{BackfillFiles, BackfillOnly, Category, StoredUpload},
};
use labdata_ports::triggers::BackfillRequest;
use serde_json::json;

use crate::{
    assertions::assert_not_found,
    files::{awaiting, confirmed, of},
    given::{self, at},
    triggers::lab::{TriggersLab, file_of},
};

/// All files of the trigger.
const ALL: BackfillFiles = BackfillFiles::Triggered {
    instrument: None,
    uploaded_from: None,
    uploaded_to: None,
};

crate::suite!(
    use triggers::backfills;

    /// The files that the trigger takes run in the order of their confirmation; times include the
    /// first and exclude the last; files can be named.
    async fn a_backfill_runs_the_files_of_the_trigger_oldest_first(lab: &TriggersLab) {
        let reader = lab.reader().await;
        let third = lab.file_at(reader, "3.csv", 30).await;
        let first = lab.file_at(reader, "1.csv", 10).await;
        let second = lab.file_at(reader, "2.csv", 20).await;
        let other = lab.file_at(reader, "notes.txt", 15).await;
        let elsewhere = lab.instrument(lab.ours, "other").await;
        lab.act().await;
        let conditions = json!({"file_extensions": ["csv"]});
        let job = lab.job("parse", Category::FileUploaded, conditions).await;
        let selected = |instrument, from: Option<i64>, to: Option<i64>| BackfillFiles::Triggered {
            instrument,
            uploaded_from: from.map(at),
            uploaded_to: to.map(at),
        };
        for (files, expected) in [
            (ALL, vec![first, second, third]),
            (
                selected(Some(reader), None, None),
                vec![first, second, third],
            ),
            (selected(Some(elsewhere.id), None, None), vec![]),
            (selected(None, Some(20), None), vec![second, third]),
            (selected(None, None, Some(20)), vec![first]),
            (selected(None, Some(10), Some(30)), vec![first, second]),
            (
                BackfillFiles::Named(BTreeSet::from([third, other])),
                vec![other, third],
            ),
        ] {
            let run = lab.backfill(&job, files.clone(), BackfillOnly::All).await;
            assert_eq!(run, expected, "{files:?}");
            let queued = lab.claim().await;
            assert_eq!(
                queued.iter().filter_map(file_of).collect::<Vec<_>>(),
                expected
            );
        }
    }

    /// `never_run` and `failed` look at the last run of this job; a file whose event waits is about to run.
    async fn a_backfill_sees_the_last_run_of_the_job_and_pending_events(lab: &TriggersLab) {
        let reader = lab.reader().await;
        let job = lab.job("parse", Category::FileUploaded, json!({})).await;
        let other = lab.job("other", Category::FileUploaded, json!({})).await;
        let failed = lab.file_at(reader, "1.csv", 10).await;
        let completed = lab.file_at(reader, "2.csv", 20).await;
        lab.act().await;
        for run in lab.claim().await {
            let fails = file_of(&run) == Some(failed) || run.execution.job_id == other.id;
            lab.finish(&run, i32::from(fails)).await;
        }
        let pending = lab.file_at(reader, "3.csv", 30).await;
        assert_eq!(lab.backfill(&job, ALL, BackfillOnly::NeverRun).await, []);
        assert_eq!(
            lab.backfill(&job, ALL, BackfillOnly::Failed).await,
            [failed]
        );
        // It waits now, so its last run is no longer a failed one.
        assert_eq!(lab.backfill(&job, ALL, BackfillOnly::Failed).await, []);
        assert_eq!(lab.act().await, 2);
        assert_eq!(lab.backfill(&job, ALL, BackfillOnly::NeverRun).await, []);
        let all = lab.backfill(&job, ALL, BackfillOnly::All).await;
        assert_eq!(all, [failed, completed, pending]);
    }

    /// Files that runs of the job made are not taken, as the trigger does not take them.
    async fn a_backfill_leaves_out_what_followed_from_its_job(lab: &TriggersLab) {
        let reader = lab.reader().await;
        let job = lab.job("parse", Category::FileUploaded, json!({})).await;
        let source = lab.file_at(reader, "plate.csv", 10).await;
        lab.act().await;
        let run = lab.claim().await.remove(0);
        lab.file("output.csv", Some(run.execution.id)).await;
        lab.act().await;
        assert_eq!(lab.backfill(&job, ALL, BackfillOnly::All).await, [source]);
    }

    /// More files than one statement reads or stores are one run each.
    async fn a_backfill_of_many_files_runs_each_once(lab: &TriggersLab) {
        let reader = lab.reader().await;
        let mut files = BTreeSet::new();
        for number in 0..1_005 {
            // Many share a time of confirmation, across the border of pages too.
            files.insert(
                lab.file_at(reader, &format!("{number}.csv"), number / 400)
                    .await,
            );
        }
        lab.act().await;
        let job = lab.job("parse", Category::FileUploaded, json!({})).await;
        let run = lab.backfill(&job, ALL, BackfillOnly::All).await;
        assert_eq!(run.len(), files.len());
        let queued = lab.claim().await;
        assert_eq!(queued.len(), files.len());
        assert_eq!(
            queued
                .iter()
                .filter_map(file_of)
                .collect::<BTreeSet<FileId>>(),
            files
        );
    }

    /// Each of two backfills at once sees the runs of the other.
    async fn of_racing_backfills_one_runs_a_file_that_has_never_run(lab: &TriggersLab) {
        let reader = lab.reader().await;
        for number in 0..20 {
            lab.file_at(reader, &format!("{number}.csv"), number).await;
        }
        lab.act().await;
        let job = lab.job("parse", Category::FileUploaded, json!({})).await;
        let one = lab.backfill(&job, ALL, BackfillOnly::NeverRun);
        let two = lab.backfill(&job, ALL, BackfillOnly::NeverRun);
        let (one, two) = join(one, two).await;
        assert_eq!(one.len() + two.len(), 20);
        assert_eq!(lab.claim().await.len(), 20);
    }

    /// The oldest files count towards the limit; a dry run returns the same runs and queues none.
    async fn a_backfill_stops_at_its_limit_and_a_dry_run_queues_nothing(lab: &TriggersLab) {
        let reader = lab.reader().await;
        let mut files = Vec::new();
        for number in 0..5 {
            files.push(lab.file_at(reader, &format!("{number}.csv"), number).await);
        }
        lab.act().await;
        let job = lab.job("parse", Category::FileUploaded, json!({})).await;
        for (is_dry_run, queued) in [(true, 0), (false, 3)] {
            let request = BackfillRequest {
                job: job.id,
                files: ALL,
                limit: 3,
                is_dry_run,
            };
            let decide = |file: &StoredUpload| Some(lab.run(&job, file));
            let runs = lab
                .triggers
                .backfill(lab.ours, &request, &decide)
                .await
                .unwrap();
            let run: Vec<FileId> = runs.iter().filter_map(|run| run.trigger_file).collect();
            assert_eq!(run, files[..3]);
            assert_eq!(lab.claim().await.len(), queued);
        }
    }

    /// Jobs and named files of other organizations, and files without bytes, are not found.
    async fn a_backfill_of_what_is_not_the_organizations_is_refused(lab: &TriggersLab) {
        let reader = lab.reader().await;
        let job = lab.job("parse", Category::FileUploaded, json!({})).await;
        let file = lab.file_at(reader, "ours.csv", 1).await;
        let their_reader = lab.instrument(lab.theirs, "reader").await.id;
        let theirs = confirmed("theirs.csv", of(Some(their_reader), None), at(1));
        let added = lab
            .files
            .add(lab.theirs, &theirs, StorageQuota::UNLIMITED, at(1));
        added.await.unwrap();
        let theirs = theirs.id;
        let waiting = awaiting("waiting.csv", of(Some(reader), None), at(1));
        lab.store(&waiting).await;
        let trigger = given::trigger(Category::FileUploaded, json!({}), lab.eve.id);
        let their_job = lab.job_of(&lab.eve, "parse", trigger).await;
        let unknown = JobId::new(given::uuid());
        for (job, files) in [
            (their_job.id, ALL),
            (unknown, ALL),
            (job.id, BackfillFiles::Named(BTreeSet::from([file, theirs]))),
            (
                job.id,
                BackfillFiles::Named(BTreeSet::from([file, waiting.id])),
            ),
            (
                job.id,
                BackfillFiles::Named(BTreeSet::from([file, FileId::new(given::uuid())])),
            ),
        ] {
            let request = BackfillRequest {
                job,
                files,
                limit: 10,
                is_dry_run: false,
            };
            let decide = |_: &StoredUpload| None;
            let backfilled = lab.triggers.backfill(lab.ours, &request, &decide).await;
            assert_not_found(backfilled);
        }
        let run = lab.backfill(&job, ALL, BackfillOnly::All).await;
        assert_eq!(run, [file]);
    }
);
