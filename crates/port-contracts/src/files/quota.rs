//! Contract of [`FileRepository`](labdata_ports::files::FileRepository): quotas.

use futures::future::join_all;
use labdata_domain::{
    files::{Attribution, Crc32c, File, FileState, StoredBytes},
    storage::{BytesByKind, InsufficientStorage, StorageQuota, StoredKind},
};
use labdata_ports::files::{AddFileError, ConfirmFileError};

use crate::{
    assertions::assert_not_found,
    files::{FilesLab, awaiting, confirmed, of},
    given::at,
};

const QUOTA: StorageQuota = StorageQuota::of_bytes(100);

const fn bytes(size: u64) -> StoredBytes {
    StoredBytes {
        size,
        crc32c: Crc32c::new(7),
    }
}

/// A confirmed file of that size.
fn of_size(path: &str, size: u64, attribution: Attribution) -> File {
    let file = confirmed(path, attribution, at(0));
    File {
        state: FileState::Confirmed {
            object: file.state.object(),
            bytes: bytes(size),
            uploaded_at: at(0),
        },
        ..file
    }
}

const fn refusal(used: u64, more: u64) -> InsufficientStorage {
    InsufficientStorage::QuotaExceeded {
        quota: 100,
        used,
        more,
    }
}

crate::suite!(
    use files::quota as file_quota;

    /// Usage is the sum of confirmed files and of those that were received, of the organization alone.
    async fn usage_counts_confirmed_and_received_bytes(lab: &FilesLab) {
        let on_reader = lab.reader(lab.ours).await;
        assert_eq!(lab.files.used_bytes(lab.ours).await.unwrap(), 0);
        let stored = of_size("a.csv", 60, on_reader);
        let waiting = awaiting("b.csv", on_reader, at(0));
        for file in [&stored, &waiting] {
            lab.add(file).await;
        }
        let foreign = of_size("a.csv", 1, lab.reader(lab.theirs).await);
        lab.add_to(lab.theirs, &foreign).await;
        assert_eq!(lab.files.used_bytes(lab.ours).await.unwrap(), 60);
        lab.files
            .note_received(lab.ours, waiting.state.object(), bytes(30))
            .await
            .unwrap();
        assert_eq!(lab.files.used_bytes(lab.ours).await.unwrap(), 90);
        let usage = lab.files.usage(lab.ours).await.unwrap();
        assert_eq!(usage, BytesByKind::of([(StoredKind::Files, 90)]));
        lab.files.delete(lab.ours, stored.id, at(50)).await.unwrap();
        assert_eq!(lab.files.used_bytes(lab.ours).await.unwrap(), 30);
        assert_eq!(lab.files.used_bytes(lab.theirs).await.unwrap(), 1);
    }

    /// A file that does not fit beside the confirmed ones is neither added nor confirmed; one that fits
    /// to the byte is. Files of other organizations and files that await their bytes do not count.
    async fn confirmed_files_take_no_more_than_the_quota(lab: &FilesLab) {
        let on_reader = lab.reader(lab.ours).await;
        let foreign = of_size("a.csv", 90, lab.reader(lab.theirs).await);
        lab.files
            .add(lab.theirs, &foreign, QUOTA, at(0))
            .await
            .unwrap();
        let first = of_size("a.csv", 60, on_reader);
        lab.files.add(lab.ours, &first, QUOTA, at(0)).await.unwrap();
        let waiting = awaiting("b.csv", on_reader, at(0));
        lab.files
            .add(lab.ours, &waiting, QUOTA, at(0))
            .await
            .unwrap();
        let object = waiting.state.object();
        lab.files
            .note_received(lab.ours, object, bytes(41))
            .await
            .unwrap();

        let over = of_size("c.csv", 41, on_reader);
        match lab.files.add(lab.ours, &over, QUOTA, at(0)).await {
            Err(AddFileError::InsufficientStorage(found)) => assert_eq!(found, refusal(60, 41)),
            other => panic!("expected InsufficientStorage, got {other:?}"),
        }
        assert_not_found(lab.files.get(lab.ours, over.id).await);
        let confirm = |size| {
            lab.files
                .confirm(lab.ours, waiting.id, object, bytes(size), QUOTA, at(1))
        };
        match confirm(41).await {
            Err(ConfirmFileError::InsufficientStorage(found)) => assert_eq!(found, refusal(60, 41)),
            other => panic!("expected InsufficientStorage, got {other:?}"),
        }
        confirm(40).await.unwrap();
        // What is confirmed stays so, also under a smaller quota.
        let again = lab.files.confirm(
            lab.ours,
            waiting.id,
            object,
            bytes(40),
            StorageQuota::of_bytes(1),
            at(2),
        );
        assert!(!again.await.unwrap().1);
    }

    /// Of files added and confirmed concurrently, as many succeed as fit.
    async fn of_racing_files_as_many_are_confirmed_as_fit(lab: &FilesLab) {
        let execution = lab.execution(lab.ours, at(0), None).await.id;
        let by_execution = of(None, Some(execution));
        let mut waiting = Vec::new();
        for _ in 0..4 {
            let file = awaiting("a.csv", by_execution, at(0));
            lab.files.add(lab.ours, &file, QUOTA, at(0)).await.unwrap();
            waiting.push(file);
        }
        let whole: Vec<File> = (0..4).map(|_| of_size("b.csv", 30, by_execution)).collect();
        let adds = whole.iter().map(|file| async {
            let added = lab.files.add(lab.ours, file, QUOTA, at(1)).await;
            matches!(added, Ok(_) | Err(AddFileError::InsufficientStorage(_)))
                .then_some(added.is_ok())
                .unwrap()
        });
        let confirms = waiting.iter().map(|file| async {
            let object = file.state.object();
            let done = lab
                .files
                .confirm(lab.ours, file.id, object, bytes(30), QUOTA, at(1))
                .await;
            matches!(done, Ok(_) | Err(ConfirmFileError::InsufficientStorage(_)))
                .then_some(done.is_ok())
                .unwrap()
        });
        let (added, confirmed) = futures::join!(join_all(adds), join_all(confirms));
        let succeeded = added.into_iter().chain(confirmed).filter(|it| *it).count();
        assert_eq!(succeeded, 3);
    }
);
