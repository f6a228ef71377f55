//! Clauses about the recording and handling of events.

use std::collections::BTreeSet;

use futures::future::join_all;
use labdata_domain::{
    files::{Attribution, File},
    ids::{FileId, OrganizationId},
    storage::StorageQuota,
    triggers::{
        TriggerEvent,
        event::{Event, EventKind},
    },
    work::NewRun,
};
use labdata_ports::files::AddFileError;
use time::OffsetDateTime;

use crate::{
    files::{BYTES, awaiting, confirmed, object, of},
    given::at,
    triggers::recorded::recorded_events,
    work::{lab::new_run, run_lab::RunsLab},
};

/// Takes the waiting events.
async fn reported(lab: &RunsLab) -> Vec<(OrganizationId, EventKind, OffsetDateTime)> {
    let events = recorded_events(&*lab.triggers, 100).await.into_iter();
    events
        .map(|event| (event.organization, event.kind, event.created_at))
        .collect()
}

/// A new instrument of ours.
async fn reader(lab: &RunsLab) -> Attribution {
    of(Some(lab.instrument(lab.ours, "reader").await.id), None)
}

/// Adds a file of ours; returns its id.
async fn added(lab: &RunsLab, file: &File, now: OffsetDateTime) -> Result<FileId, AddFileError> {
    let quota = StorageQuota::UNLIMITED;
    let added = lab.files.add(lab.ours, file, quota, now).await;
    added.map(|recorded| recorded.file.id)
}

crate::suite!(
    use triggers::events;

    /// Confirming a file stores one event; confirming it again stores none, also when the first one
    /// was taken.
    async fn a_confirmation_is_recorded_once(lab: &RunsLab) {
        let file = awaiting("a.csv", reader(lab).await, at(0));
        added(lab, &file, at(0)).await.unwrap();
        let (object, quota) = (file.state.object(), StorageQuota::UNLIMITED);
        let confirm = || {
            let files = &lab.files;
            files.confirm(lab.ours, file.id, object, BYTES, quota, at(9))
        };
        confirm().await.unwrap();
        confirm().await.unwrap();
        let expected = (lab.ours, EventKind::FileUploaded(file.id), at(9));
        assert_eq!(reported(lab).await, [expected]);
        confirm().await.unwrap();
        assert_eq!(reported(lab).await, []);
    }

    /// Recording a file whose bytes are stored already stores one event; a second one of that path is
    /// refused and stores none.
    async fn a_file_that_is_added_with_its_bytes_is_recorded_once(lab: &RunsLab) {
        let of = reader(lab).await;
        let file = confirmed("a.csv", of, at(3));
        added(lab, &file, at(3)).await.unwrap();
        let taken = added(lab, &confirmed("a.csv", of, at(4)), at(4)).await;
        assert!(taken.is_err(), "{taken:?}");
        let expected = (lab.ours, EventKind::FileUploaded(file.id), at(3));
        assert_eq!(reported(lab).await, [expected]);
    }

    /// The event of a file that takes over the record of an unfinished upload has that record's id.
    async fn a_file_that_takes_over_an_awaiting_record_is_recorded_by_its_id(lab: &RunsLab) {
        let of = reader(lab).await;
        let first = awaiting("a.csv", of, at(0));
        added(lab, &first, at(0)).await.unwrap();
        let second = confirmed("a.csv", of, at(5));
        added(lab, &second, at(5)).await.unwrap();
        let expected = (lab.ours, EventKind::FileUploaded(first.id), at(5));
        assert_eq!(reported(lab).await, [expected]);
    }

    /// A record that awaits its bytes, and a confirmation that is refused, store no event.
    async fn a_file_without_bytes_or_refused_is_not_recorded(lab: &RunsLab) {
        let file = awaiting("a.csv", reader(lab).await, at(0));
        added(lab, &file, at(0)).await.unwrap();
        let awaited = file.state.object();
        for (organization, object) in [(lab.ours, object()), (lab.theirs, awaited)] {
            let (files, quota) = (&lab.files, StorageQuota::UNLIMITED);
            let confirmed = files.confirm(organization, file.id, object, BYTES, quota, at(1));
            let confirmed = confirmed.await;
            assert!(confirmed.is_err(), "{confirmed:?}");
        }
        assert_eq!(reported(lab).await, []);
    }

    /// Concurrent confirmations store one event.
    async fn of_racing_confirmations_one_event_is_stored(lab: &RunsLab) {
        let file = awaiting("a.csv", reader(lab).await, at(0));
        added(lab, &file, at(0)).await.unwrap();
        let (object, quota) = (file.state.object(), StorageQuota::UNLIMITED);
        let calls = (1..9).map(|second| {
            let files = &lab.files;
            files.confirm(lab.ours, file.id, object, BYTES, quota, at(second))
        });
        for result in join_all(calls).await {
            result.unwrap();
        }
        let stored = lab.files.get(lab.ours, file.id).await.unwrap();
        let at = stored.state.uploaded_at().unwrap();
        let expected = (lab.ours, EventKind::FileUploaded(file.id), at);
        assert_eq!(reported(lab).await, [expected]);
    }

    /// Concurrent uploads of one path store one event.
    async fn of_racing_uploads_of_a_path_one_event_is_stored(lab: &RunsLab) {
        let of = reader(lab).await;
        let candidates: Vec<File> = (0..6).map(|_| confirmed("a.csv", of, at(1))).collect();
        let adding = candidates.iter().map(|file| added(lab, file, at(1)));
        let results = join_all(adding).await;
        let winner = results.into_iter().find_map(Result::ok).unwrap();
        let expected = (lab.ours, EventKind::FileUploaded(winner), at(1));
        assert_eq!(reported(lab).await, [expected]);
    }

    /// A file that is deleted before its event is handled triggers nothing.
    async fn the_event_of_a_deleted_file_goes_with_it(lab: &RunsLab) {
        let of = reader(lab).await;
        let (deleted, stays) = (confirmed("a.csv", of, at(1)), confirmed("b.csv", of, at(2)));
        for file in [&deleted, &stays] {
            added(lab, file, at(2)).await.unwrap();
        }
        let deleting = lab.files.delete(lab.ours, deleted.id, at(50));
        deleting.await.unwrap();
        let expected = (lab.ours, EventKind::FileUploaded(stays.id), at(2));
        assert_eq!(reported(lab).await, [expected]);
    }

    /// Events of all organizations are taken oldest first, at most `limit`, each once.
    async fn the_oldest_events_are_taken_first_up_to_the_limit(lab: &RunsLab) {
        let mut expected = Vec::new();
        for (organization, second) in [(lab.ours, 3), (lab.theirs, 1), (lab.ours, 2)] {
            let path = format!("{second}.csv");
            let reader = lab.instrument(organization, &path).await.id;
            let file = confirmed(&path, of(Some(reader), None), at(second));
            let quota = StorageQuota::UNLIMITED;
            let added = lab.files.add(organization, &file, quota, at(3));
            added.await.unwrap();
            expected.push((at(second), organization, file.id));
        }
        expected.sort_unstable();
        let take = async || recorded_events(&*lab.triggers, 2).await;
        let mut taken = take().await;
        assert_eq!(taken.len(), 2);
        taken.extend(take().await);
        let file = |event: &Event| event.kind.file().unwrap();
        let taken: Vec<_> = taken
            .iter()
            .map(|event| (event.created_at, event.organization, file(event)))
            .collect();
        assert_eq!(taken, expected);
        assert_eq!(take().await, []);
    }

    /// Racing calls share the events: none is lost, none is handled twice.
    async fn of_racing_takers_one_gets_each_event(lab: &RunsLab) {
        let of = reader(lab).await;
        let mut stored: BTreeSet<FileId> = BTreeSet::new();
        for number in 0..12 {
            let file = confirmed(&format!("{number}.csv"), of, at(number));
            stored.insert(added(lab, &file, at(20)).await.unwrap());
        }
        let job = lab.job(lab.ours, "some job").await.id;
        let decide = |event: TriggerEvent<'_>| {
            let run = NewRun {
                trigger_file: event.event.kind.file(),
                ..new_run(job, lab.ada.id, at(20))
            };
            vec![run]
        };
        let mut handled = 0;
        loop {
            // A call skips what another one is handling, so a round may leave some.
            let calls = (0..4).map(|_| lab.triggers.act_on_events(2, &decide));
            let round = join_all(calls).await.into_iter();
            let count: u32 = round.map(|fired| fired.unwrap().handled).sum();
            if count == 0 {
                break;
            }
            handled += count;
        }
        let runs = lab.claim(at(30), 100).await;
        assert_eq!((handled, runs.len()), (12, 12));
        let files = runs
            .iter()
            .filter_map(|run| run.execution.origin.run()?.trigger_file);
        assert_eq!(files.collect::<BTreeSet<_>>(), stored);
    }
);
