//! Contract of [`FileRepository`](labdata_ports::files::FileRepository): pending and abandoned
//! uploads.

use std::collections::BTreeSet;

use futures::future::join_all;
use labdata_domain::{
    files::{File, FileState, ObjectKey, StoredBytes},
    ids::OrganizationId,
    storage::StorageQuota,
};
use labdata_ports::files::ConfirmFileError;

use crate::{
    assertions::assert_not_found,
    files::{BYTES, FilesLab, assert_refused, awaiting, confirmed, object},
    given::at,
};

fn received(file: &File) -> Option<StoredBytes> {
    match file.state {
        FileState::AwaitingBytes { received, .. } => received,
        FileState::Confirmed { .. } => panic!("it awaits"),
    }
}

crate::suite!(
    use files::sweeps as file_sweeps;

    /// Size and checksum of the received bytes are readable until another object is awaited.
    async fn received_bytes_are_noted_until_the_object_is_superseded(lab: &FilesLab) {
        let of = lab.reader(lab.ours).await;
        let file = awaiting("a.csv", of, at(0));
        lab.add(&file).await;
        assert_eq!(
            received(&lab.files.get(lab.ours, file.id).await.unwrap()),
            None
        );
        let object = file.state.object();
        lab.files
            .note_received(lab.ours, object, BYTES)
            .await
            .unwrap();
        let found = lab.files.get(lab.ours, file.id).await.unwrap();
        assert_eq!(received(&found), Some(BYTES));
        lab.add(&awaiting("a.csv", of, at(1))).await;
        assert_eq!(
            received(&lab.files.get(lab.ours, file.id).await.unwrap()),
            None
        );
    }

    /// Neither a superseded object, nor a confirmed one, nor another organization's changes anything.
    async fn bytes_that_no_file_awaits_are_not_noted(lab: &FilesLab) {
        let of = lab.reader(lab.ours).await;
        let waiting = awaiting("a.csv", of, at(0));
        let done = confirmed("b.csv", of, at(0));
        for file in [&waiting, &done] {
            lab.add(file).await;
        }
        lab.files
            .note_received(lab.ours, object(), BYTES)
            .await
            .unwrap();
        lab.files
            .note_received(lab.ours, done.state.object(), BYTES)
            .await
            .unwrap();
        lab.files
            .note_received(lab.theirs, waiting.state.object(), BYTES)
            .await
            .unwrap();
        for file in [waiting, done] {
            assert_eq!(lab.files.get(lab.ours, file.id).await.unwrap(), file);
        }
    }

    /// A fresh URL, a confirmation or another organization's request retains a record from being
    /// discarded.
    async fn a_record_is_discarded_only_with_the_object_that_it_awaits(lab: &FilesLab) {
        let of = lab.reader(lab.ours).await;
        let (waiting, done) = (awaiting("a.csv", of, at(0)), confirmed("b.csv", of, at(0)));
        for file in [&waiting, &done] {
            lab.add(file).await;
        }
        let awaited = waiting.state.object();
        assert_refused!(
            lab.files.discard(lab.ours, waiting.id, object()).await,
            ConfirmFileError::Superseded
        );
        assert_refused!(
            lab.files
                .discard(lab.ours, done.id, done.state.object())
                .await,
            ConfirmFileError::Superseded
        );
        assert_refused!(
            lab.files.discard(lab.theirs, waiting.id, awaited).await,
            ConfirmFileError::Port(_)
        );
        lab.files
            .discard(lab.ours, waiting.id, awaited)
            .await
            .unwrap();
        assert_not_found(lab.files.get(lab.ours, waiting.id).await);
        assert_refused!(
            lab.files.discard(lab.ours, waiting.id, awaited).await,
            ConfirmFileError::Port(_)
        );
        assert_eq!(lab.files.get(lab.ours, done.id).await.unwrap(), done);
    }

    /// A record is confirmed or discarded, never both.
    async fn of_a_discard_and_a_confirmation_one_wins(lab: &FilesLab) {
        let of = lab.reader(lab.ours).await;
        for number in 0..8 {
            let file = awaiting(&format!("{number}.csv"), of, at(0));
            lab.add(&file).await;
            let object = file.state.object();
            let (discarded, confirmed) = futures::join!(
                lab.files.discard(lab.ours, file.id, object),
                lab.confirm(&file, at(1)),
            );
            assert_ne!(
                discarded.is_ok(),
                confirmed.is_ok(),
                "{discarded:?} {confirmed:?}"
            );
            let found = lab.files.get(lab.ours, file.id).await;
            assert_eq!(found.is_ok(), confirmed.is_ok());
        }
    }

    /// Records of all organizations are removed once their URL has expired, up to the limit; confirmed
    /// records and those with a valid URL remain.
    async fn records_are_taken_when_their_url_expired_before(lab: &FilesLab) {
        let (of_ours, of_theirs) = (lab.reader(lab.ours).await, lab.reader(lab.theirs).await);
        let (early, foreign) = (
            awaiting("a.csv", of_ours, at(0)),
            awaiting("a.csv", of_theirs, at(0)),
        );
        let late = awaiting("b.csv", of_ours, at(60));
        let done = confirmed("c.csv", of_ours, at(0));
        for (organization, file) in [
            (lab.ours, &early),
            (lab.theirs, &foreign),
            (lab.ours, &late),
            (lab.ours, &done),
        ] {
            lab.files
                .add(organization, file, StorageQuota::UNLIMITED, at(0))
                .await
                .unwrap();
        }
        let quarter = 15 * 60;
        assert_eq!(lab.files.take_expired(at(quarter), 10).await.unwrap(), []);
        let mut taken = lab.files.take_expired(at(quarter + 1), 1).await.unwrap();
        assert_eq!(taken.len(), 1);
        taken.extend(lab.files.take_expired(at(quarter + 60), 10).await.unwrap());
        let taken: BTreeSet<_> = taken.into_iter().collect();
        let expected = [(lab.ours, &early), (lab.theirs, &foreign)];
        assert_eq!(
            taken,
            expected
                .map(|(organization, file)| (organization, file.state.object()))
                .into()
        );
        assert_not_found(lab.files.get(lab.ours, early.id).await);
        for file in [late, done] {
            assert_eq!(lab.files.get(lab.ours, file.id).await.unwrap(), file);
        }
    }

    /// Concurrent sweepers share the records: none is lost, none is returned twice.
    async fn of_racing_sweepers_one_takes_each_record(lab: &FilesLab) {
        let of = lab.reader(lab.ours).await;
        let mut stored: BTreeSet<(OrganizationId, ObjectKey)> = BTreeSet::new();
        for number in 0..12 {
            let file = awaiting(&format!("{number}.csv"), of, at(0));
            lab.add(&file).await;
            stored.insert((lab.ours, file.state.object()));
        }
        let mut taken = Vec::new();
        loop {
            // A sweeper skips rows locked by another, so a round may leave some.
            let round = join_all((0..4).map(|_| lab.files.take_expired(at(9_999), 2))).await;
            let round: Vec<_> = round.into_iter().flat_map(Result::unwrap).collect();
            if round.is_empty() {
                break;
            }
            taken.extend(round);
        }
        assert_eq!(taken.len(), stored.len());
        assert_eq!(taken.into_iter().collect::<BTreeSet<_>>(), stored);
    }

    /// Objects are stored for backups only.
    async fn objects_are_kept_for_backups_only(lab: &FilesLab) {
        assert!(!lab.files.are_objects_retained().await.unwrap());
    }

    /// An object is referenced by a record of its organization, confirmed or awaiting.
    async fn objects_without_a_record_are_unreferenced(lab: &FilesLab) {
        let of = lab.reader(lab.ours).await;
        let (waiting, done) = (awaiting("a.csv", of, at(0)), confirmed("b.csv", of, at(0)));
        for file in [&waiting, &done] {
            lab.add(file).await;
        }
        let unknown = object();
        let objects = [
            (lab.ours, waiting.state.object()),
            (lab.ours, done.state.object()),
            (lab.theirs, done.state.object()),
            (lab.ours, unknown),
        ];
        let found = lab.files.unreferenced(&objects).await.unwrap();
        let expected = [(lab.theirs, done.state.object()), (lab.ours, unknown)];
        assert_eq!(
            found.into_iter().collect::<BTreeSet<_>>(),
            expected.into_iter().collect()
        );
        assert_eq!(lab.files.unreferenced(&[]).await.unwrap(), []);
    }
);
