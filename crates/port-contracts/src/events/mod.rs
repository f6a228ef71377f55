//! Contract of [`EventLog`].

use std::fmt::Debug;

use futures::future::join_all;
use labdata_domain::{
    events::{EventPosition, LoggedEvent, LoggedEventKind},
    executions::FinalStatus,
    ids::{OrganizationId, UserId},
    notifications::Sent,
    storage::StorageQuota,
};
use labdata_ports::{
    catalog::CatalogStore,
    data::DataStore,
    events::EventLog,
    idempotency::{Begun, Idempotency},
};

use crate::{
    Itself, Subject,
    catalog::definitions::sample,
    data::lab::{DataHarness, Lab, insert, request},
    files::{confirmed, of},
    fixtures::Executions,
    given::at,
    idempotency::{request as idempotent_request, response},
    models::lab::{TrainingsLab, failure, success},
    notifications::{PLENTY, notification},
};

/// Maximum number of calls until events that other transactions delay are readable.
const ATTEMPTS: usize = 5000;

/// Reads all events after a position, in small batches, once there are that many: transactions of
/// others may delay them.
pub(crate) async fn read(
    log: &dyn EventLog,
    organization: OrganizationId,
    user: UserId,
    after: EventPosition,
    count: usize,
) -> Vec<LoggedEvent> {
    let (mut events, mut position) = (Vec::new(), after);
    for _ in 0..ATTEMPTS {
        let batch = log.read(organization, user, position, 2).await.unwrap();
        assert!(batch.next >= position && batch.events.len() <= 2);
        position = batch.next;
        if batch.events.is_empty() && events.len() >= count {
            break;
        }
        events.extend(batch.events);
    }
    events
}

/// Repeats a call until it returns that value: transactions of others may delay it.
async fn assert_becomes<T: PartialEq + Debug>(expected: T, call: impl AsyncFn() -> T) {
    let mut found = call().await;
    for _ in 1..ATTEMPTS {
        if found == expected {
            break;
        }
        found = call().await;
    }
    assert_eq!(found, expected);
}

/// Checks the kinds of all events that the user may see.
async fn assert_kinds(
    log: &dyn EventLog,
    organization: OrganizationId,
    user: UserId,
    expected: &[LoggedEventKind],
) {
    let start = EventPosition::START;
    let events = read(log, organization, user, start, expected.len()).await;
    let kinds: Vec<_> = events.into_iter().map(|event| event.kind).collect();
    assert_eq!(kinds, expected);
}

crate::suite!(
    use events as event_log;

    /// A version that becomes ready or fails has an event; a cancelled one has none.
    async fn ends_of_trainings_are_logged(lab: &TrainingsLab) {
        let start = lab.log.end(lab.ours).await.unwrap();
        let ready = lab.claimed("wine", at(0)).await;
        lab.finish(&ready, &success(), at(1)).await.unwrap();
        let failed = lab.claimed("beer", at(2)).await;
        lab.finish(&failed, &failure(), at(3)).await.unwrap();
        assert_eq!(lab.finish(&failed, &success(), at(4)).await, None);
        let cancelled = lab.claimed("cider", at(5)).await.version.model;
        let cancel = lab.models.cancel(lab.ours, cancelled, at(6));
        cancel.await.unwrap();
        let events = read(&*lab.log, lab.ours, lab.ada.id, start, 2).await;
        let reported: Vec<_> = events.into_iter().map(|it| (it.at, it.kind)).collect();
        let expected = [
            (
                at(1),
                LoggedEventKind::ModelReady {
                    model: ready.version.model,
                    version_number: 1,
                },
            ),
            (
                at(3),
                LoggedEventKind::ModelFailed {
                    model: failed.version.model,
                    version_number: 1,
                },
            ),
        ];
        assert_eq!(reported, expected);
        assert_kinds(&*lab.log, lab.theirs, lab.ada.id, &[]).await;
    }

    /// The start and the end of an execution, and a file's confirmation and deletion.
    async fn files_and_executions_are_logged_in_order(lab: &TrainingsLab) {
        let user = lab.ada.id;
        let execution = lab.execution(lab.ours, at(0), None).await;
        let file = confirmed("a.csv", of(None, Some(execution.id)), at(1));
        let files = &lab.files;
        let added = files.add(lab.ours, &file, StorageQuota::UNLIMITED, at(1));
        added.await.unwrap();
        let executions = &lab.executions;
        for _ in 0..2 {
            let closed = executions.close(lab.ours, execution.id, FinalStatus::Failed, at(2));
            closed.await.unwrap();
        }
        files.delete(lab.ours, file.id, at(3)).await.unwrap();
        let expected = [
            LoggedEventKind::ExecutionStarted(execution.id),
            LoggedEventKind::FileConfirmed(file.id),
            LoggedEventKind::ExecutionFailed(execution.id),
            LoggedEventKind::FileDeleted(file.id),
        ];
        assert_kinds(&*lab.log, lab.ours, user, &expected).await;
    }

    /// A definition that changes nothing and a second revert have no event.
    async fn writes_reverts_and_definitions_are_logged(
        harness: &Itself<impl DataHarness + Subject<dyn EventLog>>,
    ) {
        let lab = Lab::empty(harness).await;
        let log = Subject::<dyn EventLog>::subject(harness);
        lab.define(&sample()).await.unwrap();
        lab.define(&sample()).await.unwrap();
        let mut expected = vec![LoggedEventKind::TableChanged("sample".to_owned())];
        // The first write creates its job; small ones that follow may share a transaction.
        for name in ["a", "b"] {
            let rows = insert("sample", serde_json::json!([{ "name": name }]));
            let written = lab.write(request([rows], [])).await.unwrap();
            expected.push(LoggedEventKind::DataWritten {
                execution: written.execution.unwrap(),
                table: "sample".to_owned(),
            });
        }
        let Some(LoggedEventKind::DataWritten { execution, .. }) = expected.last().cloned() else {
            panic!("{expected:?}");
        };
        let data = Subject::<dyn DataStore>::subject(harness);
        let request = lab.reverting(execution);
        for _ in 0..2 {
            let reverted = data.revert(lab.organization, &request);
            reverted.await.unwrap();
        }
        expected.push(LoggedEventKind::ExecutionReverted(execution));
        let catalog = Subject::<dyn CatalogStore>::subject(harness);
        let table = || LoggedEventKind::TableChanged("sample".to_owned());
        let dropped = catalog.drop_column(lab.organization, "sample", "note", true, at(201));
        dropped.await.unwrap();
        expected.push(table());
        let mut renamed = sample();
        renamed.columns.retain(|column| column.name != "note");
        for column in &mut renamed.columns {
            if column.name == "volume" {
                column.renamed_from =
                    Some(std::mem::replace(&mut column.name, "amount".to_owned()));
            }
        }
        lab.define(&renamed).await.unwrap();
        expected.push(table());
        let dropped = catalog.drop_table(lab.organization, "sample", true, at(202));
        dropped.await.unwrap();
        expected.push(table());
        assert_kinds(&*log, lab.organization, lab.user, &expected).await;
    }

    /// Others do not see the event. A notification that is not delivered has none.
    async fn a_notification_is_logged_for_its_recipient_alone(lab: &TrainingsLab) {
        let ada = lab.ada.id;
        let bob = lab.user(lab.ours, "bob@example.org").await.id;
        let notifications = &lab.notifications;
        let (first, repeated) = (notification("once", 0), notification("once", 1));
        let sent = notifications
            .send(lab.ours, ada, &first, PLENTY)
            .await
            .unwrap();
        assert_eq!(sent, Sent::Delivered(first.id));
        let sent = notifications.send(lab.ours, ada, &repeated, PLENTY).await;
        assert_eq!(sent.unwrap(), Sent::Deduplicated);
        let expected = [LoggedEventKind::NotificationCreated(first.id)];
        assert_kinds(&*lab.log, lab.ours, ada, &expected).await;
        assert_kinds(&*lab.log, lab.ours, bob, &[]).await;
    }

    /// Continuing after any event reads exactly those that follow it.
    async fn a_reader_resumes_after_any_event(lab: &TrainingsLab) {
        for (name, second) in [("a", 0), ("b", 1), ("c", 2)] {
            let claimed = lab.claimed(name, at(second)).await;
            lab.finish(&claimed, &failure(), at(second)).await.unwrap();
        }
        let all = read(&*lab.log, lab.ours, lab.ada.id, EventPosition::START, 3).await;
        assert_eq!(all.len(), 3);
        for (index, event) in all.iter().enumerate() {
            let count = all.len() - index - 1;
            let rest = read(&*lab.log, lab.ours, lab.ada.id, event.position, count).await;
            assert_eq!(rest, all[index + 1..]);
        }
        let log = &lab.log;
        assert_becomes(true, async || {
            let end = log.end(lab.ours).await.unwrap();
            all.iter().all(|event| event.position < end)
        })
        .await;
    }

    /// Events of other organizations and users, deleted ones, and positions without an event are not
    /// contained.
    async fn only_a_stored_event_that_the_user_may_see_is_contained(lab: &TrainingsLab) {
        let bob = lab.user(lab.ours, "bob@example.org").await.id;
        let failed = lab.claimed("wine", at(0)).await;
        lab.finish(&failed, &failure(), at(10)).await.unwrap();
        let notifications = &lab.notifications;
        let sending = notification("once", 20);
        let sent = notifications.send(lab.ours, lab.ada.id, &sending, PLENTY);
        sent.await.unwrap();
        let log = &lab.log;
        let start = EventPosition::START;
        let events = read(&*lab.log, lab.ours, lab.ada.id, start, 2).await;
        let [failed, notified] = events.as_slice() else {
            panic!("{events:?}");
        };
        let contains = async |organization, user, position| {
            let contains = log.contains(organization, user, position);
            contains.await.unwrap()
        };
        for event in [failed, notified] {
            assert!(contains(lab.ours, lab.ada.id, event.position).await);
            assert!(!contains(lab.theirs, lab.ada.id, event.position).await);
            let beside = EventPosition {
                number: event.position.number + 1_000_000,
                ..event.position
            };
            assert!(!contains(lab.ours, lab.ada.id, beside).await);
        }
        assert!(contains(lab.ours, bob, failed.position).await);
        assert!(!contains(lab.ours, bob, notified.position).await);
        let end = log.end(lab.ours).await.unwrap();
        assert!(!contains(lab.ours, lab.ada.id, end).await);
        assert_becomes(1, async || log.delete_before(at(11), 5).await.unwrap()).await;
        assert!(!contains(lab.ours, lab.ada.id, failed.position).await);
    }

    /// A reader that reads while many transactions commit gets each event once.
    async fn racing_transactions_lose_no_event(lab: &TrainingsLab) {
        let user = lab.ada.id;
        let (log, files) = (&lab.log, &lab.files);
        let start = log.end(lab.ours).await.unwrap();
        let execution = lab.execution(lab.ours, at(0), None).await;
        let of = of(None, Some(execution.id));
        let added: Vec<_> = (0..24)
            .map(|number| confirmed(&format!("{number}.csv"), of, at(1)))
            .collect();
        let adding = async {
            let adding = added.iter();
            let adding =
                adding.map(|file| files.add(lab.ours, file, StorageQuota::UNLIMITED, at(1)));
            for result in join_all(adding).await {
                result.unwrap();
            }
        };
        let reading = async {
            let (mut position, mut events) = (start, Vec::new());
            while events.len() < added.len() + 1 {
                let batch = log.read(lab.ours, user, position, 3).await.unwrap();
                position = batch.next;
                events.extend(batch.events);
            }
            events
        };
        let ((), events) = futures::join!(adding, reading);
        assert!(events.is_sorted_by(|a, b| a.position < b.position));
        let mut reported: Vec<_> = events
            .iter()
            .filter_map(|event| event.kind.references().file)
            .collect();
        let mut expected: Vec<_> = added.iter().map(|file| file.id).collect();
        reported.sort_unstable();
        expected.sort_unstable();
        assert_eq!(reported, expected);
    }

    /// A unit of work of an organization that has changed its tables is open: others get their events, and its
    /// own come when it ends.
    async fn an_open_write_of_one_organization_delays_no_other(
        harness: &Itself<impl Executions + Subject<dyn EventLog> + Subject<dyn Idempotency>>,
    ) {
        let log = Subject::<dyn EventLog>::subject(harness);
        let ours = harness.organization("ours").await.id;
        let ada = harness.user(ours, "ada@example.org").await.id;
        let theirs = harness.organization("theirs").await.id;
        let eve = harness.user(theirs, "eve@example.org").await.id;
        let started = harness.execution(theirs, at(0), None).await.id;
        let request = idempotent_request(ours, "key");
        let once = Subject::<dyn Idempotency>::subject(harness);
        let Begun::New(unit) = once.begin(&request).await.unwrap() else {
            panic!("it ran before");
        };
        let catalog = unit.repositories().catalog;
        catalog.define(ours, &sample(), at(1)).await.unwrap();
        let second = harness.execution(theirs, at(2), None).await.id;
        let expected = [started, second].map(LoggedEventKind::ExecutionStarted);
        assert_kinds(&*log, theirs, eve, &expected).await;
        unit.commit(Some(&response(1))).await.unwrap();
        let expected = [LoggedEventKind::TableChanged("sample".to_owned())];
        assert_kinds(&*log, ours, ada, &expected).await;
    }

    /// Events before a time are deleted, at most `limit` at a time, and later ones stay.
    async fn old_events_are_deleted(lab: &TrainingsLab) {
        for (name, second) in [("a", 10), ("b", 20), ("c", 30)] {
            let claimed = lab.claimed(name, at(second)).await;
            lab.finish(&claimed, &failure(), at(second)).await.unwrap();
        }
        let log = &lab.log;
        assert_becomes(1, async || log.delete_before(at(30), 1).await.unwrap()).await;
        assert_becomes(1, async || log.delete_before(at(30), 5).await.unwrap()).await;
        assert_eq!(log.delete_before(at(30), 5).await.unwrap(), 0);
        let start = EventPosition::START;
        let left = read(&*lab.log, lab.ours, lab.ada.id, start, 1).await;
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].at, at(30));
    }
);
