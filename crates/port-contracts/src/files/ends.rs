//! Contract of [`FileRepository`](labdata_ports::files::FileRepository): confirming and deleting
//! files. [`files_contract!`](crate::files_contract) makes the tests.

use futures::future::join_all;
use labdata_domain::{
    executions::FinalStatus,
    files::{Crc32c, File, FileFilter, FileState, StoredBytes},
    storage::StorageQuota,
};
use labdata_ports::{executions::ExecutionRepository, files::ConfirmFileError};

use crate::{
    Subject,
    assertions::assert_not_found,
    files::{Files, assert_refused, awaiting, confirmed, files, object, of as attribution, reader},
    given::at,
    paging::ALL,
};

const BYTES: StoredBytes = StoredBytes {
    size: 77,
    crc32c: Crc32c::new(0x8000_0001),
};

/// Confirming stores what is known of the bytes, and the file is listed from then on.
pub async fn confirming_records_size_checksum_and_time<H: Files>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let files = files(harness);
    let file = awaiting("a.csv", reader(harness, lab).await, at(0));
    files
        .add(lab, &file, StorageQuota::UNLIMITED, at(0))
        .await
        .unwrap();
    let listed = files.list(lab, &FileFilter::default(), ALL).await.unwrap();
    assert_eq!(listed.items, []);
    let object = file.state.object();
    let (found, newly) = files
        .confirm(lab, file.id, object, BYTES, StorageQuota::UNLIMITED, at(9))
        .await
        .unwrap();
    let state = FileState::Confirmed {
        object,
        bytes: BYTES,
        uploaded_at: at(9),
    };
    let expected = File { state, ..file };
    assert_eq!((&found, newly), (&expected, true));
    assert_eq!(files.get(lab, expected.id).await.unwrap(), expected);
    let listed = files.list(lab, &FileFilter::default(), ALL).await.unwrap();
    assert_eq!(listed.items, [expected]);
}

/// Confirming a confirmed file again changes nothing and stores no event.
pub async fn confirming_again_changes_nothing<H: Files>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let files = files(harness);
    let file = awaiting("a.csv", reader(harness, lab).await, at(0));
    files
        .add(lab, &file, StorageQuota::UNLIMITED, at(0))
        .await
        .unwrap();
    let first = files
        .confirm(
            lab,
            file.id,
            file.state.object(),
            BYTES,
            StorageQuota::UNLIMITED,
            at(1),
        )
        .await
        .unwrap();
    let other = StoredBytes { size: 1, ..BYTES };
    for object in [file.state.object(), object()] {
        let again = files
            .confirm(lab, file.id, object, other, StorageQuota::UNLIMITED, at(2))
            .await
            .unwrap();
        assert_eq!(again, (first.0.clone(), false));
    }
}

/// The bytes of an earlier URL do not confirm a record that awaits those of a later one.
pub async fn an_object_that_was_superseded_is_not_confirmed<H: Files>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let (files, of) = (files(harness), reader(harness, lab).await);
    let (first, second) = (awaiting("a.csv", of, at(0)), awaiting("a.csv", of, at(1)));
    files
        .add(lab, &first, StorageQuota::UNLIMITED, at(0))
        .await
        .unwrap();
    files
        .add(lab, &second, StorageQuota::UNLIMITED, at(1))
        .await
        .unwrap();
    let late = files
        .confirm(
            lab,
            first.id,
            first.state.object(),
            BYTES,
            StorageQuota::UNLIMITED,
            at(2),
        )
        .await;
    assert_refused!(late, ConfirmFileError::Superseded);
    let (_, newly) = files
        .confirm(
            lab,
            first.id,
            second.state.object(),
            BYTES,
            StorageQuota::UNLIMITED,
            at(2),
        )
        .await
        .unwrap();
    assert!(newly);
}

/// A file of an execution that ended, or whose deadline has passed, is not confirmed; one that was
/// confirmed in time is returned as it is.
pub async fn a_closed_execution_confirms_no_file<H>(harness: &H)
where
    H: Files + Subject<dyn ExecutionRepository>,
{
    let lab = harness.organization("lab").await.id;
    let files = files(harness);
    let executions = Subject::<dyn ExecutionRepository>::subject(harness);
    let ended = harness.execution(lab, at(0), None).await.id;
    let overdue = harness.execution(lab, at(0), Some(1)).await.id;
    for execution in [ended, overdue] {
        let of = |path| awaiting(path, attribution(None, Some(execution)), at(0));
        let (early, late) = (of("early.csv"), of("late.csv"));
        for file in [&early, &late] {
            files
                .add(lab, file, StorageQuota::UNLIMITED, at(0))
                .await
                .unwrap();
        }
        let confirm = |file: &File, second| {
            files.confirm(
                lab,
                file.id,
                file.state.object(),
                BYTES,
                StorageQuota::UNLIMITED,
                at(second),
            )
        };
        let (_, newly) = confirm(&early, 1).await.unwrap();
        assert!(newly);
        if execution == ended {
            executions
                .close(lab, ended, FinalStatus::Completed, at(2))
                .await
                .unwrap();
        }
        assert_refused!(confirm(&late, 60).await, ConfirmFileError::ExecutionClosed);
        assert_eq!(files.get(lab, late.id).await.unwrap(), late);
        let (_, newly) = confirm(&early, 60).await.unwrap();
        assert!(!newly);
    }
}

/// Of concurrent calls one confirms; all return the same record.
pub async fn of_racing_confirmations_one_confirms<H: Files>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let files = files(harness);
    let file = awaiting("a.csv", reader(harness, lab).await, at(0));
    files
        .add(lab, &file, StorageQuota::UNLIMITED, at(0))
        .await
        .unwrap();
    let object = file.state.object();
    let calls = (1..7).map(|second| {
        files.confirm(
            lab,
            file.id,
            object,
            BYTES,
            StorageQuota::UNLIMITED,
            at(second),
        )
    });
    let results: Vec<_> = join_all(calls)
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect();
    assert_eq!(results.iter().filter(|(_, newly)| *newly).count(), 1);
    let stored = files.get(lab, file.id).await.unwrap();
    for (found, _) in results {
        assert_eq!(found, stored);
    }
}

/// Another organization confirms nothing.
pub async fn only_its_own_organization_confirms_a_file<H: Files>(harness: &H) {
    let (ours, theirs) = harness.two_organizations().await;
    let files = files(harness);
    let file = awaiting("a.csv", reader(harness, theirs).await, at(0));
    files
        .add(theirs, &file, StorageQuota::UNLIMITED, at(0))
        .await
        .unwrap();
    match files
        .confirm(
            ours,
            file.id,
            file.state.object(),
            BYTES,
            StorageQuota::UNLIMITED,
            at(1),
        )
        .await
    {
        Err(ConfirmFileError::Port(error)) => assert_not_found::<()>(Err(error)),
        other => panic!("expected NotFound, got {other:?}"),
    }
    assert_eq!(files.get(theirs, file.id).await.unwrap(), file);
}

/// Deleting returns the record, once; the path can be used again by a new one.
pub async fn a_deleted_file_is_gone_and_its_path_free<H: Files>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let (files, of) = (files(harness), reader(harness, lab).await);
    for file in [confirmed("a.csv", of, at(0)), awaiting("a.csv", of, at(1))] {
        files
            .add(lab, &file, StorageQuota::UNLIMITED, at(1))
            .await
            .unwrap();
        assert_eq!(files.delete(lab, file.id, at(50)).await.unwrap(), file);
        assert_not_found(files.get(lab, file.id).await);
        assert_not_found(files.delete(lab, file.id, at(50)).await);
        assert_eq!(
            files
                .list(lab, &FileFilter::default(), ALL)
                .await
                .unwrap()
                .items,
            []
        );
    }
    let again = confirmed("a.csv", of, at(2));
    assert_eq!(
        files
            .add(lab, &again, StorageQuota::UNLIMITED, at(2))
            .await
            .unwrap()
            .file,
        again
    );
}

/// Another organization deletes nothing.
pub async fn only_its_own_organization_deletes_a_file<H: Files>(harness: &H) {
    let (ours, theirs) = harness.two_organizations().await;
    let files = files(harness);
    let file = confirmed("a.csv", reader(harness, theirs).await, at(0));
    files
        .add(theirs, &file, StorageQuota::UNLIMITED, at(0))
        .await
        .unwrap();
    assert_not_found(files.delete(ours, file.id, at(50)).await);
    assert_eq!(files.get(theirs, file.id).await.unwrap(), file);
}
