//! Horizon of the event log: which transactions delay events, and that none is lost.

use labdata_domain::{
    events::{EventPosition, LoggedEvent, LoggedEventKind},
    ids::{FileId, OrganizationId, UserId},
    storage::StorageQuota,
};
use labdata_port_contracts::{
    Harness, Subject,
    files::{confirmed, of},
    fixtures::{Instruments, Tenants},
    given::at,
};
use labdata_ports::{events::EventLog, files::FileRepository};
use labdata_test_database::TestDatabase;
use tokio_postgres::Client;

use crate::{contracts::Postgres, look_behind};

/// Maximum number of reads until an event is readable.
const ATTEMPTS: usize = 5000;

struct Lab {
    postgres: Postgres,
    organization: OrganizationId,
    user: UserId,
}

impl Lab {
    async fn new() -> Self {
        let postgres = Postgres::fresh().await;
        let organization = postgres.organization("lab").await.id;
        let user = postgres.user(organization, "ada@example.org").await.id;
        Self {
            postgres,
            organization,
            user,
        }
    }

    /// Confirms a file, which is an event.
    async fn confirm(&self, name: &str) -> FileId {
        let instrument = self.postgres.instrument(self.organization, name).await.id;
        let files = Subject::<dyn FileRepository>::subject(&self.postgres);
        let file = confirmed(name, of(Some(instrument), None), at(0));
        let added = files.add(self.organization, &file, StorageQuota::UNLIMITED, at(0));
        added.await.expect("recorded");
        file.id
    }

    async fn read(&self, after: EventPosition) -> Vec<LoggedEvent> {
        let log = Subject::<dyn EventLog>::subject(&self.postgres);
        let batch = log.read(self.organization, self.user, after, 100).await;
        batch.expect("events").events
    }

    /// Reads until there are that many events.
    async fn until(&self, count: usize) -> Vec<LoggedEventKind> {
        let mut events = Vec::new();
        for _ in 0..ATTEMPTS {
            events = self.read(EventPosition::START).await;
            if events.len() >= count {
                break;
            }
        }
        events.into_iter().map(|event| event.kind).collect()
    }

    /// Begins a transaction that has a number, as one that has written.
    async fn begin_writing(&self) -> Client {
        begin_writing(self.postgres.url()).await
    }
}

async fn begin_writing(url: &str) -> Client {
    let client = look_behind(url).await;
    let begun = client.batch_execute("BEGIN; SELECT pg_current_xact_id()");
    begun.await.expect("a transaction");
    client
}

#[tokio::test]
async fn an_open_transaction_delays_later_events_and_loses_none() {
    let lab = Lab::new().await;
    let before = lab.confirm("before.csv").await;
    let open = lab.begin_writing().await;
    let during = lab.confirm("during.csv").await;
    let [before, during] = [before, during].map(LoggedEventKind::FileConfirmed);
    assert_eq!(lab.until(1).await, std::slice::from_ref(&before));

    let insert = format!(
        "INSERT INTO labdata.event_log (organization_id, type, at, table_name) \
         VALUES ('{}', 'table.changed', now(), 'sample'); COMMIT",
        lab.organization
    );
    open.batch_execute(&insert).await.expect("committed");
    let changed = LoggedEventKind::TableChanged("sample".to_owned());
    assert_eq!(lab.until(3).await, [before, changed, during]);
}

#[tokio::test]
async fn an_open_transaction_that_only_reads_delays_nothing() {
    let lab = Lab::new().await;
    let reading = look_behind(lab.postgres.url()).await;
    reading
        .batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM labdata.event_log")
        .await
        .expect("a transaction");
    let file = lab.confirm("a.csv").await;
    assert_eq!(lab.until(1).await, [LoggedEventKind::FileConfirmed(file)]);
}

#[tokio::test]
async fn an_open_transaction_of_another_database_delays_nothing() {
    let lab = Lab::new().await;
    let other = TestDatabase::new().await;
    let _open = begin_writing(other.url()).await;
    let file = lab.confirm("a.csv").await;
    assert_eq!(lab.until(1).await, [LoggedEventKind::FileConfirmed(file)]);
}

#[tokio::test]
async fn events_that_a_restored_copy_brought_do_not_hide_new_ones() {
    let lab = Lab::new().await;
    let copied = EventPosition {
        transaction: 1 << 40,
        number: 1_000_000,
    };
    let insert = format!(
        "INSERT INTO labdata.event_log (organization_id, transaction_id, number, type, at, table_name) \
         OVERRIDING SYSTEM VALUE VALUES ('{}', {}, {}, 'table.changed', now(), 'sample')",
        lab.organization, copied.transaction, copied.number
    );
    let behind = look_behind(lab.postgres.url()).await;
    behind.batch_execute(&insert).await.expect("a copied event");
    let log = Subject::<dyn EventLog>::subject(&lab.postgres);
    let contained = log.contains(lab.organization, lab.user, copied).await;
    assert!(!contained.expect("looked up"));
    let file = lab.confirm("a.csv").await;
    assert_eq!(lab.until(1).await, [LoggedEventKind::FileConfirmed(file)]);

    assert_eq!(log.delete_before(at(0), 5).await.expect("swept"), 0);
    let stored = behind.query_one("SELECT count(*) FROM labdata.event_log", &[]);
    assert_eq!(stored.await.expect("a number").get::<_, i64>(0), 1);
}
