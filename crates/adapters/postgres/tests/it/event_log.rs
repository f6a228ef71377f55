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

/// Numbers that look random and are the same for the same seed (Knuth's MMIX generator).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        let next = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = next.wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % bound
    }
}

/// A session that records events in transactions of random length.
struct Writer {
    client: Client,
    organization: OrganizationId,
    is_declared: bool,
    /// Events of the open transaction.
    pending: Option<Vec<String>>,
}

impl Writer {
    async fn run(&self, statement: &str) {
        let done = self.client.batch_execute(statement).await;
        done.expect("a statement");
    }

    /// Begins, records, commits or rolls back; returns the events that are committed.
    async fn step(&mut self, random: &mut Random, number: usize) -> Vec<String> {
        let Some(pending) = &mut self.pending else {
            let declare = format!(
                "SELECT pg_advisory_xact_lock_shared({}, \
                     labdata.lock_key('events {}')::bit(32)::integer);",
                0x6c65_7667, self.organization
            );
            let number = "SELECT pg_current_xact_id();";
            // Some declare themselves before they have a number, some after.
            let begun = match (self.is_declared, random.below(2)) {
                (false, _) => format!("BEGIN; {number}"),
                (true, 0) => format!("BEGIN; {declare} {number}"),
                (true, _) => format!("BEGIN; {number} {declare}"),
            };
            self.pending = Some(Vec::new());
            self.run(&begun).await;
            return Vec::new();
        };
        match random.below(5) {
            0 => {
                let committed = self.pending.take().expect("open");
                self.run("COMMIT").await;
                committed
            }
            1 => {
                self.pending = None;
                self.run("ROLLBACK").await;
                Vec::new()
            }
            _ => {
                let name = format!("event_{number}");
                pending.push(name.clone());
                let organization = self.organization;
                let insert = format!(
                    "INSERT INTO labdata.event_log (organization_id, type, at, table_name) \
                     VALUES ('{organization}', 'table.changed', now(), '{name}')"
                );
                self.run(&insert).await;
                Vec::new()
            }
        }
    }
}

/// A reader that continues after each batch, and what it is to read in the end.
struct Reader {
    organization: OrganizationId,
    user: UserId,
    position: EventPosition,
    read: Vec<String>,
    committed: Vec<String>,
}

impl Reader {
    async fn read(&mut self, log: &dyn EventLog) {
        let batch = log
            .read(self.organization, self.user, self.position, 3)
            .await;
        let batch = batch.expect("events");
        assert!(batch.next >= self.position);
        self.position = batch.next;
        for event in batch.events {
            match event.kind {
                LoggedEventKind::TableChanged(name) => self.read.push(name),
                other => panic!("{other:?}"),
            }
        }
    }
}

/// Transactions of two organizations begin, record and end in any order, between reads: declared ones, and
/// ones that are not.
#[tokio::test]
async fn no_interleaving_of_transactions_makes_a_reader_skip_or_repeat_an_event() {
    let lab = Lab::new().await;
    let log = Subject::<dyn EventLog>::subject(&lab.postgres);
    let theirs = lab.postgres.organization("theirs").await.id;
    let them = lab.postgres.user(theirs, "eve@example.org").await.id;
    let reader = |organization, user| Reader {
        organization,
        user,
        position: EventPosition::START,
        read: Vec::new(),
        committed: Vec::new(),
    };
    let mut readers = [reader(lab.organization, lab.user), reader(theirs, them)];
    let mut writers = Vec::new();
    for number in 0..6 {
        writers.push(Writer {
            client: look_behind(lab.postgres.url()).await,
            organization: readers[number % 2].organization,
            is_declared: number < 4,
            pending: None,
        });
    }
    let mut random = Random(7);
    for number in 0..600 {
        if random.below(3) == 0 {
            readers[random.below(2)].read(&*log).await;
            continue;
        }
        let index = random.below(writers.len());
        let committed = writers[index].step(&mut random, number).await;
        readers[index % 2].committed.extend(committed);
    }
    drop(writers);
    for mut reader in readers {
        for _ in 0..ATTEMPTS {
            if reader.read.len() >= reader.committed.len() {
                break;
            }
            reader.read(&*log).await;
        }
        reader.read(&*log).await;
        assert!(reader.committed.len() > 20, "{:?}", reader.committed);
        reader.read.sort_unstable();
        reader.committed.sort_unstable();
        assert_eq!(reader.read, reader.committed);
    }
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
