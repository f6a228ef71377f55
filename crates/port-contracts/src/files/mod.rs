//! Contract of [`FileRepository`]: recording files. [`crate::files::ends`] covers confirming and
//! deleting, [`crate::files::lists`] lists.

pub mod blob;
pub mod ends;
pub mod lists;
pub mod quota;
pub mod sweeps;

use futures::future::join_all;
use labdata_domain::{
    executions::FinalStatus,
    files::{
        Attribution, ContentType, Crc32c, File, FileFilter, FilePath, FileState, ObjectKey,
        SourceType, StoredBytes,
    },
    ids::{ExecutionId, FileId, InstrumentId, OrganizationId},
    storage::StorageQuota,
};
use labdata_ports::{
    executions::ExecutionRepository,
    files::{AddFileError, FileRepository},
};
use time::OffsetDateTime;

use crate::{
    Subject,
    assertions::assert_not_found,
    fixtures::{Executions, Instruments},
    given::{self, at},
    paging::ALL,
};

/// Makes one test of each clause of [`crate::files`] and [`crate::files::ends`].
#[macro_export]
macro_rules! files_contract {
    ($harness:ty $(, $test:meta)?) => {
        $crate::clauses! { [$($test)?] $harness, files in files:
            a_file_reads_back_as_it_was_added,
            an_unknown_file_is_not_found,
            a_file_of_another_organization_is_not_found,
            an_execution_that_is_not_the_organizations_is_unknown,
            an_instrument_that_is_not_the_organizations_is_unknown,
            a_closed_execution_takes_no_file,
            a_confirmed_path_of_an_instrument_is_taken,
            paths_differ_by_every_character,
            paths_of_other_instruments_and_of_none_may_repeat,
            an_awaiting_record_gives_way_to_the_next_of_its_path,
            a_confirmed_upload_takes_an_awaiting_record_over,
            of_racing_confirmed_files_of_a_path_one_is_recorded,
            racing_awaiting_files_of_a_path_share_one_record,
            of_a_close_and_an_upload_none_is_torn,
        }
        $crate::clauses! { [$($test)?] $harness, file_ends in files::ends:
            confirming_records_size_checksum_and_time,
            confirming_again_changes_nothing,
            an_object_that_was_superseded_is_not_confirmed,
            a_closed_execution_confirms_no_file,
            of_racing_confirmations_one_confirms,
            only_its_own_organization_confirms_a_file,
            a_deleted_file_is_gone_and_its_path_free,
            only_its_own_organization_deletes_a_file,
        }
        $crate::clauses! { [$($test)?] $harness, file_quota in files::quota:
            usage_counts_confirmed_and_received_bytes,
            confirmed_files_take_no_more_than_the_quota,
            of_racing_files_as_many_are_confirmed_as_fit,
        }
        $crate::clauses! { [$($test)?] $harness, file_sweeps in files::sweeps:
            received_bytes_are_noted_until_the_object_is_superseded,
            bytes_that_no_file_awaits_are_not_noted,
            a_record_is_discarded_only_with_the_object_that_it_awaits,
            of_a_discard_and_a_confirmation_one_wins,
            records_are_taken_when_their_url_expired_before,
            of_racing_sweepers_one_takes_each_record,
            objects_without_a_record_are_unreferenced,
            objects_are_kept_for_backups_only,
        }
    };
}

/// Instrument and execution of a file.
#[must_use]
pub fn of(instrument: Option<InstrumentId>, execution: Option<ExecutionId>) -> Attribution {
    Attribution::new(instrument, execution).unwrap()
}

/// A confirmed file that is not stored yet.
#[must_use]
pub fn confirmed(path: &str, attribution: Attribution, at: OffsetDateTime) -> File {
    let bytes = StoredBytes {
        size: 1_500,
        crc32c: Crc32c::new(0xe306_9283),
    };
    File {
        id: FileId::new(given::uuid()),
        path: FilePath::parse(path).unwrap(),
        content_type: ContentType::substitute(Some("text/csv; charset=utf-8")),
        source_type: attribution.source_type(None),
        attribution,
        file_created_at: None,
        created_at: at,
        state: FileState::Confirmed {
            object: object(),
            bytes,
            uploaded_at: at,
        },
    }
}

pub(crate) fn awaiting(path: &str, attribution: Attribution, at: OffsetDateTime) -> File {
    let expires_at = at + time::Duration::minutes(15);
    File {
        state: FileState::AwaitingBytes {
            object: object(),
            expires_at,
            received: None,
        },
        ..confirmed(path, attribution, at)
    }
}

pub(crate) fn object() -> ObjectKey {
    ObjectKey::new(given::uuid())
}

/// A harness that can store instruments and executions for files.
pub trait Files: Executions + Instruments + Subject<dyn FileRepository> {}
impl<H: Executions + Instruments + Subject<dyn FileRepository>> Files for H {}

pub(crate) fn files<H: Files>(harness: &H) -> std::sync::Arc<dyn FileRepository> {
    Subject::<dyn FileRepository>::subject(harness)
}

pub(crate) async fn reader<H: Files>(harness: &H, organization: OrganizationId) -> Attribution {
    of(
        Some(harness.instrument(organization, "reader").await.id),
        None,
    )
}

macro_rules! assert_refused {
    ($result:expr, $error:pat) => {
        match $result {
            Err($error) => {}
            other => panic!("expected {}, got {other:?}", stringify!($error)),
        }
    };
}
pub(crate) use assert_refused;

/// Every field of every kind of record is stored, times to the microsecond.
pub async fn a_file_reads_back_as_it_was_added<H: Files>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let instrument = harness.instrument(lab, "reader").await.id;
    let execution = harness.execution(lab, at(0), Some(60)).await.id;
    let files = files(harness);
    let largest = File {
        file_created_at: Some(at(-500)),
        source_type: SourceType::InstrumentSync,
        state: FileState::Confirmed {
            object: object(),
            bytes: StoredBytes {
                size: 524_288_000,
                crc32c: Crc32c::new(u32::MAX),
            },
            uploaded_at: at(9),
        },
        ..confirmed(
            "C:\\Süd\\%_'\"\\plate 1.CSV",
            of(Some(instrument), None),
            at(1),
        )
    };
    let added = [
        largest,
        confirmed("a.csv", of(None, Some(execution)), at(1)),
        confirmed("b", of(Some(instrument), Some(execution)), at(1)),
        awaiting("c.csv", of(Some(instrument), None), at(1)),
        awaiting(&"é".repeat(1024), of(None, Some(execution)), at(1)),
    ];
    for file in added {
        let recorded = files
            .add(lab, &file, StorageQuota::UNLIMITED, at(1))
            .await
            .unwrap();
        assert_eq!((&recorded.file, recorded.abandoned), (&file, None));
        assert_eq!(files.get(lab, file.id).await.unwrap(), file);
    }
}

/// An id that no file has is not found.
pub async fn an_unknown_file_is_not_found<H: Files>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let unknown = FileId::new(given::uuid());
    assert_not_found(files(harness).get(lab, unknown).await);
    assert_not_found(files(harness).delete(lab, unknown, at(50)).await);
}

/// Another organization's file is answered like one that does not exist.
pub async fn a_file_of_another_organization_is_not_found<H: Files>(harness: &H) {
    let (ours, theirs) = harness.two_organizations().await;
    let file = confirmed("a.csv", reader(harness, theirs).await, at(0));
    files(harness)
        .add(theirs, &file, StorageQuota::UNLIMITED, at(0))
        .await
        .unwrap();
    assert_not_found(files(harness).get(ours, file.id).await);
}

/// An execution that does not exist, or is another organization's, is unknown.
pub async fn an_execution_that_is_not_the_organizations_is_unknown<H: Files>(harness: &H) {
    let (ours, theirs) = harness.two_organizations().await;
    let files = files(harness);
    let foreign = harness.execution(theirs, at(0), None).await.id;
    for execution in [foreign, ExecutionId::new(given::uuid())] {
        let file = confirmed("a.csv", of(None, Some(execution)), at(1));
        assert_refused!(
            files.add(ours, &file, StorageQuota::UNLIMITED, at(1)).await,
            AddFileError::UnknownExecution
        );
        assert_not_found(files.get(ours, file.id).await);
    }
}

/// An instrument that does not exist, or is another organization's, is unknown.
pub async fn an_instrument_that_is_not_the_organizations_is_unknown<H: Files>(harness: &H) {
    let (ours, theirs) = harness.two_organizations().await;
    let files = files(harness);
    let foreign = harness.instrument(theirs, "reader").await.id;
    for instrument in [foreign, InstrumentId::new(given::uuid())] {
        let file = confirmed("a.csv", of(Some(instrument), None), at(1));
        assert_refused!(
            files.add(ours, &file, StorageQuota::UNLIMITED, at(1)).await,
            AddFileError::UnknownInstrument
        );
        assert_not_found(files.get(ours, file.id).await);
    }
}

/// An execution that ended, or whose deadline has passed, takes no file; an open one does.
pub async fn a_closed_execution_takes_no_file<H>(harness: &H)
where
    H: Files + Subject<dyn ExecutionRepository>,
{
    let lab = harness.organization("lab").await.id;
    let files = files(harness);
    let executions = Subject::<dyn ExecutionRepository>::subject(harness);
    let ended = harness.execution(lab, at(0), None).await.id;
    executions
        .close(lab, ended, FinalStatus::Completed, at(1))
        .await
        .unwrap();
    let overdue = harness.execution(lab, at(0), Some(1)).await.id;
    for execution in [ended, overdue] {
        let file = confirmed("a.csv", of(None, Some(execution)), at(60));
        assert_refused!(
            files.add(lab, &file, StorageQuota::UNLIMITED, at(60)).await,
            AddFileError::ExecutionClosed
        );
        assert_not_found(files.get(lab, file.id).await);
    }
    let in_time = harness.execution(lab, at(0), Some(1)).await.id;
    let file = confirmed("a.csv", of(None, Some(in_time)), at(59));
    files
        .add(lab, &file, StorageQuota::UNLIMITED, at(59))
        .await
        .unwrap();
}

/// The path of an instrument's confirmed file is taken, for records of either state.
pub async fn a_confirmed_path_of_an_instrument_is_taken<H: Files>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let (files, of) = (files(harness), reader(harness, lab).await);
    let first = confirmed("a.csv", of, at(0));
    files
        .add(lab, &first, StorageQuota::UNLIMITED, at(0))
        .await
        .unwrap();
    for second in [confirmed("a.csv", of, at(1)), awaiting("a.csv", of, at(1))] {
        assert_refused!(
            files
                .add(lab, &second, StorageQuota::UNLIMITED, at(1))
                .await,
            AddFileError::PathTaken
        );
        assert_not_found(files.get(lab, second.id).await);
    }
    assert_eq!(files.get(lab, first.id).await.unwrap(), first);
}

/// Paths are compared to the letter.
pub async fn paths_differ_by_every_character<H: Files>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let (files, of) = (files(harness), reader(harness, lab).await);
    for path in [
        "a.csv",
        "A.csv",
        "a.csv ",
        " a.csv",
        "x/a.csv",
        "x\\a.csv",
        "á.csv",
        "a\u{301}.csv",
    ] {
        files
            .add(
                lab,
                &confirmed(path, of, at(0)),
                StorageQuota::UNLIMITED,
                at(0),
            )
            .await
            .unwrap();
    }
}

/// Without an instrument paths may repeat, and so may they on another one or elsewhere.
pub async fn paths_of_other_instruments_and_of_none_may_repeat<H: Files>(harness: &H) {
    let (ours, theirs) = harness.two_organizations().await;
    let files = files(harness);
    let execution = harness.execution(ours, at(0), None).await.id;
    let other = harness.instrument(ours, "other").await.id;
    let here = [
        reader(harness, ours).await,
        of(Some(other), Some(execution)),
        of(None, Some(execution)),
        of(None, Some(execution)),
    ];
    for attribution in here {
        files
            .add(
                ours,
                &confirmed("a.csv", attribution, at(0)),
                StorageQuota::UNLIMITED,
                at(0),
            )
            .await
            .unwrap();
    }
    let there = reader(harness, theirs).await;
    files
        .add(
            theirs,
            &confirmed("a.csv", there, at(0)),
            StorageQuota::UNLIMITED,
            at(0),
        )
        .await
        .unwrap();
}

/// The next record of a path that still awaits its bytes keeps the id and the time of creation of
/// the first, takes everything else of the new one, and tells which object is awaited no more.
pub async fn an_awaiting_record_gives_way_to_the_next_of_its_path<H: Files>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let (files, on_reader) = (files(harness), reader(harness, lab).await);
    let execution = harness.execution(lab, at(0), None).await.id;
    let first = awaiting("a.csv", on_reader, at(0));
    files
        .add(lab, &first, StorageQuota::UNLIMITED, at(0))
        .await
        .unwrap();
    let second = File {
        content_type: ContentType::default(),
        ..awaiting("a.csv", of(on_reader.instrument(), Some(execution)), at(5))
    };
    let recorded = files
        .add(lab, &second, StorageQuota::UNLIMITED, at(5))
        .await
        .unwrap();
    let expected = File {
        id: first.id,
        created_at: first.created_at,
        ..second.clone()
    };
    assert_eq!(recorded.file, expected);
    let FileState::AwaitingBytes {
        object, expires_at, ..
    } = first.state
    else {
        panic!("it awaits")
    };
    assert_eq!(recorded.abandoned, Some((object, expires_at)));
    assert_eq!(files.get(lab, first.id).await.unwrap(), expected);
    assert_not_found(files.get(lab, second.id).await);
}

/// An upload whose bytes are stored takes the record of an unfinished one over and is listed.
pub async fn a_confirmed_upload_takes_an_awaiting_record_over<H: Files>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let (files, of) = (files(harness), reader(harness, lab).await);
    let first = awaiting("a.csv", of, at(0));
    files
        .add(lab, &first, StorageQuota::UNLIMITED, at(0))
        .await
        .unwrap();
    let second = confirmed("a.csv", of, at(5));
    let recorded = files
        .add(lab, &second, StorageQuota::UNLIMITED, at(5))
        .await
        .unwrap();
    let expected = File {
        id: first.id,
        created_at: first.created_at,
        ..second
    };
    assert_eq!(recorded.file, expected);
    assert_eq!(
        recorded.abandoned.map(|(object, _)| object),
        Some(first.state.object())
    );
    let listed = files.list(lab, &FileFilter::default(), ALL).await.unwrap();
    assert_eq!(listed.items, [expected]);
}

/// Of confirmed files stored concurrently under one path, one is recorded; the rest find it taken.
pub async fn of_racing_confirmed_files_of_a_path_one_is_recorded<H: Files>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let (files, of) = (files(harness), reader(harness, lab).await);
    for path in ["new.csv", "awaited.csv"] {
        if path == "awaited.csv" {
            files
                .add(
                    lab,
                    &awaiting(path, of, at(0)),
                    StorageQuota::UNLIMITED,
                    at(0),
                )
                .await
                .unwrap();
        }
        let candidates: Vec<File> = (0..6).map(|_| confirmed(path, of, at(1))).collect();
        let results = join_all(
            candidates
                .iter()
                .map(|file| files.add(lab, file, StorageQuota::UNLIMITED, at(1))),
        )
        .await;
        assert_eq!(
            results.iter().filter(|result| result.is_ok()).count(),
            1,
            "{results:?}"
        );
        for result in results.into_iter().filter(Result::is_err) {
            assert_refused!(result, AddFileError::PathTaken);
        }
    }
    let listed = files.list(lab, &FileFilter::default(), ALL).await.unwrap();
    assert_eq!(listed.items.len(), 2);
}

/// Awaiting files stored concurrently under one path all succeed, in one record.
pub async fn racing_awaiting_files_of_a_path_share_one_record<H: Files>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let (files, of) = (files(harness), reader(harness, lab).await);
    let candidates: Vec<File> = (0..6).map(|_| awaiting("a.csv", of, at(1))).collect();
    let results = join_all(
        candidates
            .iter()
            .map(|file| files.add(lab, file, StorageQuota::UNLIMITED, at(1))),
    )
    .await;
    let recorded: Vec<_> = results.into_iter().map(Result::unwrap).collect();
    let ids: std::collections::BTreeSet<FileId> = recorded.iter().map(|r| r.file.id).collect();
    assert_eq!(ids.len(), 1, "one record");
    let id = recorded.first().unwrap().file.id;
    let last = files.get(lab, id).await.unwrap().state.object();
    let mut given_up: Vec<ObjectKey> = recorded
        .iter()
        .filter_map(|r| r.abandoned.map(|(object, _)| object))
        .collect();
    given_up.push(last);
    given_up.sort_unstable();
    let mut all: Vec<ObjectKey> = candidates.iter().map(|file| file.state.object()).collect();
    all.sort_unstable();
    assert_eq!(given_up, all, "every object but the last is told of once");
}

/// If an execution is closed during its uploads, each upload succeeds or is refused as a whole.
pub async fn of_a_close_and_an_upload_none_is_torn<H>(harness: &H)
where
    H: Files + Subject<dyn ExecutionRepository>,
{
    let lab = harness.organization("lab").await.id;
    let files = files(harness);
    let executions = Subject::<dyn ExecutionRepository>::subject(harness);
    let execution = harness.execution(lab, at(0), None).await.id;
    let candidates: Vec<File> = (0..6)
        .map(|n| confirmed(&format!("{n}.csv"), of(None, Some(execution)), at(1)))
        .collect();
    let adds = join_all(
        candidates
            .iter()
            .map(|file| files.add(lab, file, StorageQuota::UNLIMITED, at(1))),
    );
    let close = executions.close(lab, execution, FinalStatus::Completed, at(1));
    let (added, closed) = futures::join!(adds, close);
    closed.unwrap();
    for (file, result) in candidates.iter().zip(added) {
        match result {
            Ok(recorded) => assert_eq!(files.get(lab, file.id).await.unwrap(), recorded.file),
            Err(AddFileError::ExecutionClosed) => assert_not_found(files.get(lab, file.id).await),
            Err(other) => panic!("expected ExecutionClosed, got {other:?}"),
        }
    }
    let late = confirmed("late.csv", of(None, Some(execution)), at(2));
    assert_refused!(
        files.add(lab, &late, StorageQuota::UNLIMITED, at(2)).await,
        AddFileError::ExecutionClosed
    );
}
