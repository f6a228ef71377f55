//! Sweeps of uploads that were given up, and of objects without a record.

use std::sync::Arc;

use bytes::Bytes;
use futures::TryStreamExt;
use labdata_application::{
    Error,
    files::{
        begin_upload::begin_upload,
        confirm_upload::confirm_upload,
        sweep_uploads::{Swept, sweep_objects, sweep_uploads},
    },
};
use labdata_domain::{
    files::ObjectKey,
    people::scope::Scope,
    refusal::{Refusal, RefusalKind},
    storage::ReserveState,
};
use labdata_memory::InMemoryDiskReserve;
use labdata_ports::{
    PortError,
    files::{MockFileRepository, blob::ByteStream},
    maintenance::DiskReserve as _,
};
use mockall::predicate::eq;

use crate::{
    files::{instrument, mock_blobs, upload, upload_file, wanted},
    lab::Lab,
};

#[tokio::test]
async fn the_sweeper_spares_uploads_of_the_last_hour() {
    let lab = Lab::new().await;
    let mut blobs = mock_blobs();
    let limit = lab.services.clock.now() - time::Duration::hours(1);
    blobs
        .expect_sweep_unfinished()
        .with(eq(limit))
        .once()
        .returning(|_| Ok(3));
    let mut services = lab.services.clone();
    services.blobs = Arc::new(blobs);
    let swept = Swept {
        unfinished: 3,
        unconfirmed: 0,
    };
    assert_eq!(sweep_uploads(&services).await.unwrap(), swept);
}

async fn put(lab: &Lab, object: ObjectKey) {
    let organization = lab.actor(&[]).organization;
    let body: ByteStream = Box::pin(futures::stream::iter([Ok(Bytes::from_static(b"x"))]));
    let stored = lab.services.blobs.put_new(organization, object, body, 1);
    stored.await.unwrap();
}

async fn objects(lab: &Lab) -> Vec<ObjectKey> {
    let objects: Vec<_> = lab.services.blobs.objects().try_collect().await.unwrap();
    objects.into_iter().map(|(_, object)| object).collect()
}

#[tokio::test]
async fn a_record_that_was_never_confirmed_goes_a_day_after_its_url_with_what_was_uploaded() {
    let lab = Lab::new().await;
    let actor = lab.actor(&[Scope::Write]);
    let command = wanted(instrument(&lab).await);
    let begun = begin_upload(&lab.services, &actor, command).await.unwrap();
    put(&lab, begun.file.state.object()).await;
    lab.clock.advance(time::Duration::hours(24));
    assert_eq!(
        sweep_uploads(&lab.services).await.unwrap(),
        Swept::default()
    );
    lab.clock.advance(time::Duration::minutes(16));
    let swept = Swept {
        unfinished: 0,
        unconfirmed: 1,
    };
    assert_eq!(sweep_uploads(&lab.services).await.unwrap(), swept);
    assert_eq!(objects(&lab).await, []);
    let late = confirm_upload(&lab.services, &actor, begun.file.id).await;
    assert!(
        matches!(
            late,
            Err(Error::Refused(Refusal {
                kind: RefusalKind::NotFound,
                ..
            }))
        ),
        "{late:?}"
    );
}

#[tokio::test]
async fn objects_that_nothing_refers_to_are_removed_when_they_are_old() {
    let lab = Lab::new().await;
    let actor = lab.actor(&[Scope::Write]);
    let command = upload(instrument(&lab).await);
    let file = upload_file(&lab.services, &actor, command).await.unwrap();
    put(&lab, ObjectKey::new(lab.services.ids.next_id())).await;
    assert_eq!(sweep_objects(&lab.services).await.unwrap(), 0);
    lab.clock.advance(time::Duration::hours(49));
    assert_eq!(sweep_objects(&lab.services).await.unwrap(), 1);
    assert_eq!(objects(&lab).await, [file.state.object()]);
}

#[tokio::test]
async fn a_full_disk_gives_its_reserve_up_to_remove_expired_uploads() {
    let lab = Lab::new().await;
    let reserve = Arc::new(InMemoryDiskReserve::new(ReserveState {
        size: 64,
        held: true,
        available: 0,
    }));
    let mut records = MockFileRepository::new();
    let mut responses = vec![Ok(Vec::new()), Err("full")];
    records
        .expect_take_expired()
        .times(2)
        .returning(move |_, _| {
            let response = responses.pop().unwrap();
            response.map_err(|text| PortError::DiskFull(text.to_owned()))
        });
    let mut services = lab.services.clone();
    services.files = Arc::new(records);
    services.disk_reserve = reserve.clone();
    sweep_uploads(&services).await.unwrap();
    assert!(!reserve.is_held());
}
