//! Contract of [`FileRepository`](labdata_ports::files::FileRepository): confirming and deleting
//! files.

use futures::future::join_all;
use labdata_domain::{
    executions::FinalStatus,
    files::{File, FileState, StoredBytes},
    storage::StorageQuota,
};
use labdata_ports::files::ConfirmFileError;

use crate::{
    assertions::assert_not_found,
    files::{BYTES, FilesLab, assert_refused, awaiting, confirmed, object, of as attribution},
    given::at,
};

crate::suite!(
    use files::ends as file_ends;

    /// Confirming stores what is known of the bytes, and the file is listed from then on.
    async fn confirming_records_size_checksum_and_time(lab: &FilesLab) {
        let file = awaiting("a.csv", lab.reader(lab.ours).await, at(0));
        lab.add(&file).await;
        assert_eq!(lab.listed().await, []);
        let object = file.state.object();
        let (found, newly) = lab.confirm(&file, at(9)).await.unwrap();
        let state = FileState::Confirmed {
            object,
            bytes: BYTES,
            uploaded_at: at(9),
        };
        let expected = File { state, ..file };
        assert_eq!((&found, newly), (&expected, true));
        assert_eq!(
            lab.files.get(lab.ours, expected.id).await.unwrap(),
            expected
        );
        assert_eq!(lab.listed().await, [expected]);
    }

    /// Confirming a confirmed file again changes nothing and stores no event. Bytes of another upload are not confirmed with
    /// it.
    async fn confirming_again_changes_nothing(lab: &FilesLab) {
        let file = awaiting("a.csv", lab.reader(lab.ours).await, at(0));
        lab.add(&file).await;
        let first = lab.confirm(&file, at(1)).await.unwrap();
        let other = StoredBytes { size: 1, ..BYTES };
        let confirm = |object| {
            let quota = StorageQuota::UNLIMITED;
            lab.files
                .confirm(lab.ours, file.id, object, other, quota, at(2))
        };
        let again = confirm(file.state.object()).await.unwrap();
        assert_eq!(again, (first.0.clone(), false));
        assert_refused!(confirm(object()).await, ConfirmFileError::Superseded);
        let stored = lab.files.get(lab.ours, file.id).await.unwrap();
        assert_eq!(stored, first.0);
    }

    /// The bytes of an earlier URL do not confirm a record that awaits those of a later one.
    async fn an_object_that_was_superseded_is_not_confirmed(lab: &FilesLab) {
        let of = lab.reader(lab.ours).await;
        let (first, second) = (awaiting("a.csv", of, at(0)), awaiting("a.csv", of, at(1)));
        lab.add(&first).await;
        lab.add(&second).await;
        let late = lab.confirm(&first, at(2)).await;
        assert_refused!(late, ConfirmFileError::Superseded);
        let (_, newly) = lab
            .files
            .confirm(
                lab.ours,
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
    async fn a_closed_execution_confirms_no_file(lab: &FilesLab) {
        let ended = lab.execution(lab.ours, at(0), None).await.id;
        let overdue = lab.execution(lab.ours, at(0), Some(1)).await.id;
        for execution in [ended, overdue] {
            let of = |path| awaiting(path, attribution(None, Some(execution)), at(0));
            let (early, late) = (of("early.csv"), of("late.csv"));
            for file in [&early, &late] {
                lab.add(file).await;
            }
            let confirm = async |file: &File, second| lab.confirm(file, at(second)).await;
            let (_, newly) = confirm(&early, 1).await.unwrap();
            assert!(newly);
            if execution == ended {
                lab.executions
                    .close(lab.ours, ended, FinalStatus::Completed, at(2))
                    .await
                    .unwrap();
            }
            assert_refused!(confirm(&late, 60).await, ConfirmFileError::ExecutionClosed);
            assert_eq!(lab.files.get(lab.ours, late.id).await.unwrap(), late);
            let (_, newly) = confirm(&early, 60).await.unwrap();
            assert!(!newly);
        }
    }

    /// Of concurrent calls one confirms; all return the same record.
    async fn of_racing_confirmations_one_confirms(lab: &FilesLab) {
        let file = awaiting("a.csv", lab.reader(lab.ours).await, at(0));
        lab.add(&file).await;
        let calls = (1..7).map(|second| lab.confirm(&file, at(second)));
        let results: Vec<_> = join_all(calls)
            .await
            .into_iter()
            .map(Result::unwrap)
            .collect();
        assert_eq!(results.iter().filter(|(_, newly)| *newly).count(), 1);
        let stored = lab.files.get(lab.ours, file.id).await.unwrap();
        for (found, _) in results {
            assert_eq!(found, stored);
        }
    }

    /// Of concurrent uploads of one path, each of which confirms its own object, one is confirmed; the rest are told so.
    async fn of_racing_uploads_of_a_path_one_is_confirmed(lab: &FilesLab) {
        let of = lab.reader(lab.ours).await;
        let uploads = (0..6).map(|second| async move {
            let file = awaiting("a.csv", of, at(second));
            let recorded = lab.try_add(&file).await.ok()?.file;
            let confirmed = lab.confirm(&recorded, at(9)).await;
            confirmed.is_ok().then(|| file.state.object())
        });
        let confirmed: Vec<_> = join_all(uploads).await.into_iter().flatten().collect();
        let listed = lab.listed().await;
        let stored: Vec<_> = listed.iter().map(|file| file.state.object()).collect();
        assert_eq!(stored, confirmed);
    }

    /// Another organization confirms nothing.
    async fn only_its_own_organization_confirms_a_file(lab: &FilesLab) {
        let file = awaiting("a.csv", lab.reader(lab.theirs).await, at(0));
        lab.add_to(lab.theirs, &file).await;
        match lab.confirm(&file, at(1)).await {
            Err(ConfirmFileError::Port(error)) => assert_not_found::<()>(Err(error)),
            other => panic!("expected NotFound, got {other:?}"),
        }
        assert_eq!(lab.files.get(lab.theirs, file.id).await.unwrap(), file);
    }

    /// Deleting returns the record, once; the path can be used again by a new one.
    async fn a_deleted_file_is_gone_and_its_path_free(lab: &FilesLab) {
        let of = lab.reader(lab.ours).await;
        for file in [confirmed("a.csv", of, at(0)), awaiting("a.csv", of, at(1))] {
            lab.add(&file).await;
            assert_eq!(
                lab.files.delete(lab.ours, file.id, at(50)).await.unwrap(),
                file
            );
            assert_not_found(lab.files.get(lab.ours, file.id).await);
            assert_not_found(lab.files.delete(lab.ours, file.id, at(50)).await);
            assert_eq!(lab.listed().await, []);
        }
        let again = confirmed("a.csv", of, at(2));
        assert_eq!(lab.add(&again).await.file, again);
    }

    /// Another organization deletes nothing.
    async fn only_its_own_organization_deletes_a_file(lab: &FilesLab) {
        let file = confirmed("a.csv", lab.reader(lab.theirs).await, at(0));
        lab.add_to(lab.theirs, &file).await;
        assert_not_found(lab.files.delete(lab.ours, file.id, at(50)).await);
        assert_eq!(lab.files.get(lab.theirs, file.id).await.unwrap(), file);
    }
);
