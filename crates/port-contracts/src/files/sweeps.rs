//! Contract of [`FileRepository`](labdata_ports::files::FileRepository): pending and abandoned
//! uploads. [`files_contract!`](crate::files_contract) makes the tests.

use std::collections::BTreeSet;

use futures::future::join_all;
use labdata_domain::{
    files::{Crc32c, File, FileState, ObjectKey, StoredBytes},
    ids::OrganizationId,
    storage::StorageQuota,
};
use labdata_ports::files::ConfirmFileError;

use crate::{
    assertions::assert_not_found,
    files::{Files, assert_refused, awaiting, confirmed, files, object, reader},
    given::at,
};

const BYTES: StoredBytes = StoredBytes {
    size: 77,
    crc32c: Crc32c::new(0x8000_0001),
};

fn received(file: &File) -> Option<StoredBytes> {
    match file.state {
        FileState::AwaitingBytes { received, .. } => received,
        FileState::Confirmed { .. } => panic!("it awaits"),
    }
}

/// Size and checksum of the received bytes are readable until another object is awaited.
pub async fn received_bytes_are_noted_until_the_object_is_superseded<H: Files>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let (files, of) = (files(harness), reader(harness, lab).await);
    let file = awaiting("a.csv", of, at(0));
    files
        .add(lab, &file, StorageQuota::UNLIMITED, at(0))
        .await
        .unwrap();
    assert_eq!(received(&files.get(lab, file.id).await.unwrap()), None);
    let object = file.state.object();
    files.note_received(lab, object, BYTES).await.unwrap();
    let found = files.get(lab, file.id).await.unwrap();
    assert_eq!(received(&found), Some(BYTES));
    files
        .add(
            lab,
            &awaiting("a.csv", of, at(1)),
            StorageQuota::UNLIMITED,
            at(1),
        )
        .await
        .unwrap();
    assert_eq!(received(&files.get(lab, file.id).await.unwrap()), None);
}

/// Neither a superseded object, nor a confirmed one, nor another organization's changes anything.
pub async fn bytes_that_no_file_awaits_are_not_noted<H: Files>(harness: &H) {
    let (lab, theirs) = harness.two_organizations().await;
    let (files, of) = (files(harness), reader(harness, lab).await);
    let waiting = awaiting("a.csv", of, at(0));
    let done = confirmed("b.csv", of, at(0));
    for file in [&waiting, &done] {
        files
            .add(lab, file, StorageQuota::UNLIMITED, at(0))
            .await
            .unwrap();
    }
    files.note_received(lab, object(), BYTES).await.unwrap();
    files
        .note_received(lab, done.state.object(), BYTES)
        .await
        .unwrap();
    files
        .note_received(theirs, waiting.state.object(), BYTES)
        .await
        .unwrap();
    for file in [waiting, done] {
        assert_eq!(files.get(lab, file.id).await.unwrap(), file);
    }
}

/// A fresh URL, a confirmation or another organization's request keeps a record from being
/// discarded.
pub async fn a_record_is_discarded_only_with_the_object_that_it_awaits<H: Files>(harness: &H) {
    let (lab, theirs) = harness.two_organizations().await;
    let (files, of) = (files(harness), reader(harness, lab).await);
    let (waiting, done) = (awaiting("a.csv", of, at(0)), confirmed("b.csv", of, at(0)));
    for file in [&waiting, &done] {
        files
            .add(lab, file, StorageQuota::UNLIMITED, at(0))
            .await
            .unwrap();
    }
    let awaited = waiting.state.object();
    assert_refused!(
        files.discard(lab, waiting.id, object()).await,
        ConfirmFileError::Superseded
    );
    assert_refused!(
        files.discard(lab, done.id, done.state.object()).await,
        ConfirmFileError::Superseded
    );
    assert_refused!(
        files.discard(theirs, waiting.id, awaited).await,
        ConfirmFileError::Port(_)
    );
    files.discard(lab, waiting.id, awaited).await.unwrap();
    assert_not_found(files.get(lab, waiting.id).await);
    assert_refused!(
        files.discard(lab, waiting.id, awaited).await,
        ConfirmFileError::Port(_)
    );
    assert_eq!(files.get(lab, done.id).await.unwrap(), done);
}

/// A record is confirmed or discarded, never both.
pub async fn of_a_discard_and_a_confirmation_one_wins<H: Files>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let (files, of) = (files(harness), reader(harness, lab).await);
    for number in 0..8 {
        let file = awaiting(&format!("{number}.csv"), of, at(0));
        files
            .add(lab, &file, StorageQuota::UNLIMITED, at(0))
            .await
            .unwrap();
        let object = file.state.object();
        let (discarded, confirmed) = futures::join!(
            files.discard(lab, file.id, object),
            files.confirm(lab, file.id, object, BYTES, StorageQuota::UNLIMITED, at(1)),
        );
        assert_ne!(
            discarded.is_ok(),
            confirmed.is_ok(),
            "{discarded:?} {confirmed:?}"
        );
        let found = files.get(lab, file.id).await;
        assert_eq!(found.is_ok(), confirmed.is_ok());
    }
}

/// Records of all organizations are removed once their URL has expired, up to the limit; confirmed
/// records and those with a valid URL remain.
pub async fn records_are_taken_when_their_url_expired_before<H: Files>(harness: &H) {
    let (ours, theirs) = harness.two_organizations().await;
    let files = files(harness);
    let (of_ours, of_theirs) = (reader(harness, ours).await, reader(harness, theirs).await);
    let (early, foreign) = (
        awaiting("a.csv", of_ours, at(0)),
        awaiting("a.csv", of_theirs, at(0)),
    );
    let late = awaiting("b.csv", of_ours, at(60));
    let done = confirmed("c.csv", of_ours, at(0));
    for (organization, file) in [
        (ours, &early),
        (theirs, &foreign),
        (ours, &late),
        (ours, &done),
    ] {
        files
            .add(organization, file, StorageQuota::UNLIMITED, at(0))
            .await
            .unwrap();
    }
    let quarter = 15 * 60;
    assert_eq!(files.take_expired(at(quarter), 10).await.unwrap(), []);
    let mut taken = files.take_expired(at(quarter + 1), 1).await.unwrap();
    assert_eq!(taken.len(), 1);
    taken.extend(files.take_expired(at(quarter + 60), 10).await.unwrap());
    let taken: BTreeSet<_> = taken.into_iter().collect();
    let expected = [(ours, &early), (theirs, &foreign)];
    assert_eq!(
        taken,
        expected
            .map(|(organization, file)| (organization, file.state.object()))
            .into()
    );
    assert_not_found(files.get(ours, early.id).await);
    for file in [late, done] {
        assert_eq!(files.get(ours, file.id).await.unwrap(), file);
    }
}

/// Concurrent sweepers share the records: none is lost, none is returned twice.
pub async fn of_racing_sweepers_one_takes_each_record<H: Files>(harness: &H) {
    let lab = harness.organization("lab").await.id;
    let (files, of) = (files(harness), reader(harness, lab).await);
    let mut stored: BTreeSet<(OrganizationId, ObjectKey)> = BTreeSet::new();
    for number in 0..12 {
        let file = awaiting(&format!("{number}.csv"), of, at(0));
        files
            .add(lab, &file, StorageQuota::UNLIMITED, at(0))
            .await
            .unwrap();
        stored.insert((lab, file.state.object()));
    }
    let mut taken = Vec::new();
    loop {
        // A sweeper skips rows locked by another, so a round may leave some.
        let round = join_all((0..4).map(|_| files.take_expired(at(9_999), 2))).await;
        let round: Vec<_> = round.into_iter().flat_map(Result::unwrap).collect();
        if round.is_empty() {
            break;
        }
        taken.extend(round);
    }
    assert_eq!(taken.len(), stored.len());
    assert_eq!(taken.into_iter().collect::<BTreeSet<_>>(), stored);
}

/// Objects are kept for backups only.
pub async fn objects_are_kept_for_backups_only<H: Files>(harness: &H) {
    assert!(!files(harness).are_objects_retained().await.unwrap());
}

/// An object is referenced by a record of its organization, confirmed or awaiting.
pub async fn objects_without_a_record_are_unreferenced<H: Files>(harness: &H) {
    let (lab, theirs) = harness.two_organizations().await;
    let (files, of) = (files(harness), reader(harness, lab).await);
    let (waiting, done) = (awaiting("a.csv", of, at(0)), confirmed("b.csv", of, at(0)));
    for file in [&waiting, &done] {
        files
            .add(lab, file, StorageQuota::UNLIMITED, at(0))
            .await
            .unwrap();
    }
    let unknown = object();
    let objects = [
        (lab, waiting.state.object()),
        (lab, done.state.object()),
        (theirs, done.state.object()),
        (lab, unknown),
    ];
    let found = files.unreferenced(&objects).await.unwrap();
    let expected = [(theirs, done.state.object()), (lab, unknown)];
    assert_eq!(
        found.into_iter().collect::<BTreeSet<_>>(),
        expected.into_iter().collect()
    );
    assert_eq!(files.unreferenced(&[]).await.unwrap(), []);
}
