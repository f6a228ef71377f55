//! Clauses about the recording and handling of events.

use std::{collections::BTreeSet, sync::Mutex};

use futures::future::join_all;
use labdata_domain::{
    files::{Crc32c, File, StoredBytes},
    ids::{FileId, OrganizationId},
    storage::StorageQuota,
    triggers::{
        TriggerEvent,
        event::{Event, EventKind},
    },
    work::NewRun,
};
use labdata_ports::triggers::TriggerStore;

use crate::{
    Subject,
    files::{Files, awaiting, confirmed, files, object, reader},
    given::at,
    work::{
        lab::new_run,
        runs::{Runs, claim},
    },
};

/// Makes one test of each clause of [`crate::triggers::events`].
#[macro_export]
macro_rules! events_contract {
    ($harness:ty $(, $test:meta)?) => {
        $crate::clauses! { [$($test)?] $harness, events in triggers::events:
            a_confirmation_is_recorded_once,
            a_file_that_is_added_with_its_bytes_is_recorded_once,
            a_file_that_takes_over_an_awaiting_record_is_recorded_by_its_id,
            a_file_without_bytes_or_refused_is_not_recorded,
            of_racing_confirmations_one_event_is_stored,
            of_racing_uploads_of_a_path_one_event_is_stored,
            the_event_of_a_deleted_file_goes_with_it,
            the_oldest_events_are_taken_first_up_to_the_limit,
            of_racing_takers_one_gets_each_event,
        }
    };
}

const BYTES: StoredBytes = StoredBytes {
    size: 77,
    crc32c: Crc32c::new(0x8000_0001),
};

/// A harness that can store files and observe events.
pub trait Events: Files + Runs {}
impl<H: Files + Runs> Events for H {}

/// Handles up to `limit` events and returns them.
async fn take<H: Events>(harness: &H, limit: u32) -> Vec<Event> {
    recorded_events(harness, limit).await
}

/// Takes the waiting events.
async fn reported<H: Events>(
    harness: &H,
) -> Vec<(OrganizationId, EventKind, time::OffsetDateTime)> {
    let events = take(harness, 100).await;
    let reported = events.into_iter();
    reported
        .map(|event| (event.organization, event.kind, event.created_at))
        .collect()
}

/// Confirming a file stores one event; confirming it again stores none, also when the first one
/// was taken.
pub async fn a_confirmation_is_recorded_once<H: Events>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let files = files(harness);
    let file = awaiting("a.csv", reader(harness, lab).await, at(0));
    files
        .add(lab, &file, StorageQuota::UNLIMITED, at(0))
        .await
        .unwrap();
    let confirm = || {
        files.confirm(
            lab,
            file.id,
            file.state.object(),
            BYTES,
            StorageQuota::UNLIMITED,
            at(9),
        )
    };
    confirm().await.unwrap();
    confirm().await.unwrap();
    let expected = (lab, EventKind::FileUploaded(file.id), at(9));
    assert_eq!(reported(harness).await, [expected]);
    confirm().await.unwrap();
    assert_eq!(reported(harness).await, []);
}

/// Recording a file whose bytes are stored already stores one event; a second one of that path is
/// refused and stores none.
pub async fn a_file_that_is_added_with_its_bytes_is_recorded_once<H: Events>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let (files, of) = (files(harness), reader(harness, lab).await);
    let file = confirmed("a.csv", of, at(3));
    files
        .add(lab, &file, StorageQuota::UNLIMITED, at(3))
        .await
        .unwrap();
    let taken = files
        .add(
            lab,
            &confirmed("a.csv", of, at(4)),
            StorageQuota::UNLIMITED,
            at(4),
        )
        .await;
    assert!(taken.is_err(), "{taken:?}");
    let expected = (lab, EventKind::FileUploaded(file.id), at(3));
    assert_eq!(reported(harness).await, [expected]);
}

/// The event of a file that takes over the record of an unfinished upload has that record's id.
pub async fn a_file_that_takes_over_an_awaiting_record_is_recorded_by_its_id<H: Events>(
    harness: &H,
) {
    let lab = harness.organization("lab").await.id;
    let (files, of) = (files(harness), reader(harness, lab).await);
    let first = awaiting("a.csv", of, at(0));
    files
        .add(lab, &first, StorageQuota::UNLIMITED, at(0))
        .await
        .unwrap();
    let second = confirmed("a.csv", of, at(5));
    files
        .add(lab, &second, StorageQuota::UNLIMITED, at(5))
        .await
        .unwrap();
    let expected = (lab, EventKind::FileUploaded(first.id), at(5));
    assert_eq!(reported(harness).await, [expected]);
}

/// A record that awaits its bytes, and a confirmation that is refused, store no event.
pub async fn a_file_without_bytes_or_refused_is_not_recorded<H: Events>(harness: &H) {
    let (lab, theirs) = harness.two_organizations().await;
    let files = files(harness);
    let file = awaiting("a.csv", reader(harness, lab).await, at(0));
    files
        .add(lab, &file, StorageQuota::UNLIMITED, at(0))
        .await
        .unwrap();
    let superseded = files
        .confirm(
            lab,
            file.id,
            object(),
            BYTES,
            StorageQuota::UNLIMITED,
            at(1),
        )
        .await;
    assert!(superseded.is_err(), "{superseded:?}");
    let object = file.state.object();
    let foreign = files
        .confirm(
            theirs,
            file.id,
            object,
            BYTES,
            StorageQuota::UNLIMITED,
            at(1),
        )
        .await;
    assert!(foreign.is_err(), "{foreign:?}");
    assert_eq!(reported(harness).await, []);
}

/// Concurrent confirmations store one event.
pub async fn of_racing_confirmations_one_event_is_stored<H: Events>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let files = files(harness);
    let file = awaiting("a.csv", reader(harness, lab).await, at(0));
    files
        .add(lab, &file, StorageQuota::UNLIMITED, at(0))
        .await
        .unwrap();
    let object = file.state.object();
    let calls = (1..9).map(|second| {
        files.confirm(
            lab,
            file.id,
            object,
            BYTES,
            StorageQuota::UNLIMITED,
            at(second),
        )
    });
    for result in join_all(calls).await {
        result.unwrap();
    }
    let at = files.get(lab, file.id).await.unwrap().state.uploaded_at();
    let expected = (lab, EventKind::FileUploaded(file.id), at.unwrap());
    assert_eq!(reported(harness).await, [expected]);
}

/// Concurrent uploads of one path store one event.
pub async fn of_racing_uploads_of_a_path_one_event_is_stored<H: Events>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let (files, of) = (files(harness), reader(harness, lab).await);
    let candidates: Vec<File> = (0..6).map(|_| confirmed("a.csv", of, at(1))).collect();
    let results = join_all(
        candidates
            .iter()
            .map(|file| files.add(lab, file, StorageQuota::UNLIMITED, at(1))),
    )
    .await;
    let winner = results.into_iter().find_map(Result::ok).unwrap().file.id;
    let expected = (lab, EventKind::FileUploaded(winner), at(1));
    assert_eq!(reported(harness).await, [expected]);
}

/// A file that is deleted before its event is handled triggers nothing.
pub async fn the_event_of_a_deleted_file_goes_with_it<H: Events>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let (files, of) = (files(harness), reader(harness, lab).await);
    let (deleted, stays) = (confirmed("a.csv", of, at(1)), confirmed("b.csv", of, at(2)));
    for file in [&deleted, &stays] {
        files
            .add(lab, file, StorageQuota::UNLIMITED, at(2))
            .await
            .unwrap();
    }
    files.delete(lab, deleted.id, at(50)).await.unwrap();
    let expected = (lab, EventKind::FileUploaded(stays.id), at(2));
    assert_eq!(reported(harness).await, [expected]);
}

/// Events of all organizations are taken oldest first, at most `limit`, each once.
pub async fn the_oldest_events_are_taken_first_up_to_the_limit<H: Events>(harness: &H) {
    let (ours, theirs) = harness.two_organizations().await;
    let files = files(harness);
    let (of_ours, of_theirs) = (reader(harness, ours).await, reader(harness, theirs).await);
    let mut expected = Vec::new();
    for (organization, of, second) in [
        (ours, of_ours, 3),
        (theirs, of_theirs, 1),
        (ours, of_ours, 2),
    ] {
        let file = confirmed(&format!("{second}.csv"), of, at(second));
        files
            .add(organization, &file, StorageQuota::UNLIMITED, at(3))
            .await
            .unwrap();
        expected.push((at(second), organization, file.id));
    }
    expected.sort_unstable();
    let mut taken = take(harness, 2).await;
    assert_eq!(taken.len(), 2);
    taken.extend(take(harness, 2).await);
    let file = |event: &Event| event.kind.file().unwrap();
    let taken: Vec<_> = taken
        .iter()
        .map(|event| (event.created_at, event.organization, file(event)))
        .collect();
    assert_eq!(taken, expected);
    assert_eq!(take(harness, 2).await, []);
}

/// Racing calls share the events: none is lost, none is handled twice.
pub async fn of_racing_takers_one_gets_each_event<H: Events>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let (files, of) = (files(harness), reader(harness, lab).await);
    let mut stored: BTreeSet<FileId> = BTreeSet::new();
    for number in 0..12 {
        let file = confirmed(&format!("{number}.csv"), of, at(number));
        files
            .add(lab, &file, StorageQuota::UNLIMITED, at(20))
            .await
            .unwrap();
        stored.insert(file.id);
    }
    let job = harness.job(lab, "some job").await.id;
    let user = harness.user(lab, "somebody@example.org").await.id;
    let decide = |event: TriggerEvent<'_>| {
        let run = NewRun {
            trigger_file: event.event.kind.file(),
            ..new_run(job, user, at(20))
        };
        vec![run]
    };
    let triggers = Subject::<dyn TriggerStore>::subject(harness);
    let mut handled = 0;
    loop {
        // A call skips what another one is handling, so a round may leave some.
        let calls = (0..4).map(|_| triggers.act_on_events(2, &decide));
        let round = join_all(calls).await.into_iter();
        let count: u32 = round.map(|fired| fired.unwrap().handled).sum();
        if count == 0 {
            break;
        }
        handled += count;
    }
    let runs = claim(harness, at(30), 100).await;
    assert_eq!((handled, runs.len()), (12, 12));
    let files = runs
        .iter()
        .filter_map(|run| run.execution.origin.run()?.trigger_file);
    assert_eq!(files.collect::<BTreeSet<_>>(), stored);
}

/// Handles up to `limit` events, from which nothing follows, and returns them.
pub(crate) async fn recorded_events<H>(harness: &H, limit: u32) -> Vec<Event>
where
    H: Subject<dyn TriggerStore>,
{
    let events = Mutex::new(Vec::new());
    let record = |event: TriggerEvent<'_>| {
        events.lock().unwrap().push(*event.event);
        Vec::new()
    };
    let triggers = harness.subject();
    let fired = triggers.act_on_events(limit, &record).await.unwrap();
    let events = events.into_inner().unwrap();
    assert_eq!(usize::try_from(fired.handled).unwrap(), events.len());
    events
}
