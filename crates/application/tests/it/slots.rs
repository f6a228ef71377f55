//! Limits of concurrent work, which callers of every kind share.

use std::{collections::BTreeMap, io::Cursor, time::Duration};

use futures::{StreamExt as _, stream};
use labdata_application::{
    Error,
    data::{
        import_file::SentFile,
        import_table::{ImportTable, read_import},
        read_series::{ReadSeries, read_series},
    },
    events::follow_events::follow_events,
    executions::list_executions::list_executions,
    files::{
        preview_table::{PreviewSource, preview_table},
        upload_room::SpoolRoom,
    },
    jobs::list_jobs::list_jobs,
    slots::Work,
    work::read_log::{follow_log, open_log},
};
use labdata_domain::{
    data::{
        import::{ImportMode, ImportWrite},
        write::OnMatch,
    },
    files::FilePath,
    ids::{ExecutionId, FileId, UserId},
    page::PageRequest,
    people::{actor::Actor, scope::Scope},
    refusal::{Refusal, RefusalKind},
};
use labdata_ports::{executions::ExecutionFilter, jobs::JobFilter};
use labdata_table_formats::read::ReadOptions;
use tokio::time::timeout;

use crate::lab::Lab;

/// Time in which a use case that needs not wait would have ended.
const MOMENT: Duration = Duration::from_millis(50);

fn is_refused<T>(outcome: &Result<T, Error>, as_kind: RefusalKind) -> bool {
    matches!(outcome, Err(Error::Refused(Refusal { kind, .. })) if *kind == as_kind)
}

fn is_not_found<T>(outcome: &Result<T, Error>) -> bool {
    is_refused(outcome, RefusalKind::NotFound)
}

#[tokio::test]
async fn a_table_of_a_file_waits_for_a_slot_of_the_user() {
    let lab = Lab::new().await;
    let actor = lab.actor(&[Scope::Read]);
    let slots = &lab.services.slots;
    let first = slots.enter(Work::ParsedTable, &actor).await;
    let unknown = FileId::new(lab.services.ids.next_id());
    let read = || {
        let source = PreviewSource::File(unknown);
        preview_table(&lab.services, &actor, source, ReadOptions::default(), 1)
    };
    assert!(timeout(MOMENT, read()).await.is_err(), "it did not wait");
    drop(first);
    let refused = read().await;
    assert!(is_not_found(&refused), "{refused:?}");
}

#[tokio::test]
async fn a_small_text_is_imported_beside_a_large_file() {
    let lab = Lab::new().await;
    let actor = lab.actor(&[Scope::Write]);
    let _large = lab.services.slots.enter(Work::Import, &actor).await;
    let import = |bytes: Vec<u8>| {
        let sent = SentFile {
            path: FilePath::parse("samples.csv").unwrap(),
            content_type: None,
            size: bytes.len().try_into().unwrap(),
            body: stream::empty().boxed(),
        };
        let command = ImportTable {
            write: ImportWrite {
                table: "sample".to_owned(),
                mode: ImportMode::Insert,
                key: None,
                on_match: OnMatch::default(),
                blank: None,
                dry_run: false,
            },
            columns: BTreeMap::new(),
            lookups: BTreeMap::new(),
            linked: Vec::new(),
            options: ReadOptions::default(),
            job_execution_id: None,
            job_name: None,
        };
        read_import(
            &lab.services,
            &actor,
            Box::new(Cursor::new(bytes)),
            sent,
            command,
        )
    };
    assert!(is_not_found(&import(b"name\nA1\n".to_vec()).await));
    for large in [
        b"PK\x03\x04".to_vec(),
        b"PAR1".to_vec(),
        vec![b'1'; (256 << 10) + 1],
    ] {
        assert!(
            timeout(MOMENT, import(large)).await.is_err(),
            "it did not wait"
        );
    }
}

#[tokio::test]
async fn a_series_waits_until_the_results_before_it_are_dropped() {
    let lab = Lab::new().await;
    let actor = lab.actor(&[Scope::Read]);
    let mut results = Vec::new();
    for _ in 0..2 {
        let slot = lab.services.slots.enter(Work::Result, &actor);
        results.push(slot.await.unwrap());
    }
    let query = ReadSeries {
        as_of: None,
        table: "curve".to_owned(),
        parent_column: None,
        parent: "a".to_owned(),
    };
    let read = || read_series(&lab.services, &actor, query.clone());
    assert!(timeout(MOMENT, read()).await.is_err(), "it did not wait");
    results.pop();
    let refused = read().await;
    assert!(is_not_found(&refused), "{refused:?}");
}

#[tokio::test]
async fn lists_logs_and_received_files_wait_for_a_slot_of_the_user() {
    let lab = Lab::new().await;
    let actor = lab.actor(&[Scope::Read]);
    let (services, page) = (
        &lab.services,
        PageRequest {
            limit: None,
            after: None,
        },
    );
    let mut slots = Vec::new();
    for (work, number) in [(Work::Page, 6), (Work::Result, 2), (Work::SpooledFile, 2)] {
        for _ in 0..number {
            slots.push(services.slots.enter(work, &actor).await.unwrap());
        }
    }
    let (jobs, executions) = (JobFilter::default(), ExecutionFilter::default());
    let unknown = ExecutionId::new(services.ids.next_id());
    let jobs = || list_jobs(services, &actor, &jobs, page);
    let executions = || list_executions(services, &actor, &executions, page);
    assert!(timeout(MOMENT, jobs()).await.is_err(), "jobs");
    assert!(timeout(MOMENT, executions()).await.is_err(), "executions");
    let log = timeout(MOMENT, open_log(services, &actor, unknown)).await;
    assert!(log.is_err(), "logs");
    let file = timeout(MOMENT, SpoolRoom::enter(services, &actor)).await;
    assert!(file.is_err(), "files");
    slots.clear();
    let (listed, ran) = (jobs().await.unwrap(), executions().await.unwrap());
    assert_eq!((listed.items.len(), ran.items.len()), (0, 0));
    assert!(is_not_found(&open_log(services, &actor, unknown).await));
    SpoolRoom::enter(services, &actor).await.unwrap();
}

#[tokio::test]
async fn a_follower_too_many_is_refused_at_once() {
    let lab = Lab::new().await;
    let actor = lab.actor(&[Scope::Read]);
    let services = &lab.services;
    let mut followers = Vec::new();
    for _ in 0..15 {
        followers.push(services.slots.follow(&actor).unwrap());
    }
    let last = follow_events(services, &actor, None).await.unwrap();
    let unknown = ExecutionId::new(services.ids.next_id());
    let refused = follow_events(services, &actor, None).await;
    assert!(is_refused(&refused, RefusalKind::Unavailable));
    let refused = follow_log(services, &actor, unknown).await;
    assert!(is_refused(&refused, RefusalKind::Unavailable));
    let colleague = Actor {
        user: UserId::new(services.ids.next_id()),
        ..actor.clone()
    };
    follow_events(services, &colleague, None).await.unwrap();
    drop(last);
    assert!(is_not_found(&follow_log(services, &actor, unknown).await));
}
