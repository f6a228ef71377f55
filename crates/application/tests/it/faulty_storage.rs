//! Use cases that store objects, while the n-th call of the storage fails: nothing that was acknowledged is lost, and
//! nothing is left for good.

use std::{collections::BTreeSet, sync::Arc};

use bytes::Bytes;
use futures::TryStreamExt;
use labdata_application::{
    Error, Services,
    files::{
        begin_upload::{BeginUpload, begin_upload},
        confirm_upload::confirm_upload,
        delete_file::delete_file,
        list_files::list_files,
        sweep_uploads::{sweep_objects, sweep_uploads},
        upload_file::UploadFile,
    },
    models::{
        create_dataset::{CreateDataset, create_dataset},
        list_datasets::list_datasets,
        list_models::list_models,
        take_snapshot::{SnapshotSource, take_snapshot},
    },
    trash::sweep_trash::sweep_trash,
};
use labdata_domain::{
    files::{FileFilter, FilePath, FileState, ObjectKey},
    ids::InstrumentId,
    page::PageRequest,
    people::{actor::Actor, scope::Scope},
};
use labdata_memory::{FaultMoment, FaultyBlobStore};
use labdata_ports::{
    files::blob::{ByteStream, PutBlobError},
    models::ModelFilter,
};
use time::Duration;

use crate::{
    files::{instrument, upload_file},
    lab::Lab,
};

/// Surroundings of a use case.
pub(crate) struct Place {
    pub(crate) lab: Lab,
    pub(crate) actor: Actor,
    instrument: InstrumentId,
    /// Services whose storage fails.
    pub(crate) faulty: Services,
}

impl Place {
    pub(crate) fn upload(&self, name: &str) -> UploadFile {
        UploadFile {
            path: FilePath::parse(name).unwrap(),
            content_type: None,
            execution: None,
            instrument: Some(self.instrument),
            source: None,
            bytes: Bytes::from_static(b"a,b\n1,2\n3,4\n"),
        }
    }

    /// Objects that records refer to.
    async fn referenced(&self) -> BTreeSet<ObjectKey> {
        let page = PageRequest {
            limit: None,
            after: None,
        };
        let (services, actor) = (&self.lab.services, &self.actor);
        let filter = FileFilter::default();
        let files = list_files(services, actor, &filter, page).await.unwrap();
        let files = files.items.iter().map(|file| file.state.object());
        let datasets = list_datasets(services, actor, page).await.unwrap();
        let datasets = datasets.items.iter().map(|dataset| dataset.object);
        let models = list_models(services, actor, ModelFilter::default(), page)
            .await
            .unwrap();
        let versions = models.items.iter();
        let artifacts = versions.filter_map(|version| Some(version.artifact?.object));
        files.chain(datasets).chain(artifacts).collect()
    }

    /// Objects of the storage.
    async fn stored(&self) -> BTreeSet<ObjectKey> {
        let objects = self.lab.services.blobs.objects();
        let objects: Vec<_> = objects.try_collect().await.unwrap();
        objects.into_iter().map(|(_, object)| object).collect()
    }
}

/// Runs a use case once for each of its calls of the storage, which fails. What it acknowledged must be there two days
/// later, and nothing else.
pub(crate) async fn assert_survives(work: impl AsyncFn(&Place) -> Result<Vec<ObjectKey>, Error>) {
    for moment in [FaultMoment::Before, FaultMoment::After] {
        for fails_at in 1.. {
            let lab = Lab::new().await;
            let blobs = FaultyBlobStore::new(&lab.services.blobs, fails_at, moment);
            let blobs = Arc::new(blobs);
            let mut faulty = lab.services.clone();
            faulty.ports.blobs = blobs.clone();
            let place = Place {
                actor: lab.actor(&[Scope::Read, Scope::Write]),
                instrument: instrument(&lab).await,
                lab,
                faulty,
            };
            let outcome = work(&place).await;
            place.lab.clock.advance(Duration::hours(50));
            sweep_uploads(&place.lab.services).await.unwrap();
            sweep_objects(&place.lab.services).await.unwrap();
            let (referenced, stored) = (place.referenced().await, place.stored().await);
            assert_eq!(
                stored, referenced,
                "call {fails_at}, {moment:?}: {outcome:?}"
            );
            let is_reached = blobs.has_failed();
            assert!(is_reached || outcome.is_ok(), "{outcome:?}");
            for acknowledged in outcome.unwrap_or_default() {
                assert!(
                    stored.contains(&acknowledged),
                    "call {fails_at}, {moment:?}"
                );
            }
            if !is_reached {
                break;
            }
        }
    }
}

#[tokio::test]
async fn an_upload_in_one_request_survives_each_failure_of_the_storage() {
    assert_survives(async |place| {
        let file = upload_file(&place.faulty, &place.actor, place.upload("a.csv")).await?;
        Ok(vec![file.state.object()])
    })
    .await;
}

#[tokio::test]
async fn an_upload_by_a_url_survives_each_failure_of_the_storage() {
    assert_survives(async |place| {
        let (services, actor) = (&place.faulty, &place.actor);
        let wanted = BeginUpload {
            path: FilePath::parse("a.csv").unwrap(),
            content_type: None,
            execution: None,
            instrument: Some(place.instrument),
            source: None,
        };
        let begun = begin_upload(services, actor, wanted).await?.file;
        let object = begun.state.object();
        // The client sends the body again after an error, and confirms again.
        for _ in 0..2 {
            let body: ByteStream = Box::pin(futures::stream::iter([Ok(Bytes::from_static(b"x"))]));
            let put = services
                .blobs
                .put_new(actor.organization, object, body, 1)
                .await;
            if matches!(put, Ok(_) | Err(PutBlobError::Exists)) {
                break;
            }
        }
        let mut confirmed = confirm_upload(services, actor, begun.id).await;
        if confirmed.is_err() {
            confirmed = confirm_upload(services, actor, begun.id).await;
        }
        let confirmed = confirmed?;
        assert!(matches!(confirmed.state, FileState::Confirmed { .. }));
        Ok(vec![confirmed.state.object()])
    })
    .await;
}

#[tokio::test]
async fn a_file_that_is_never_confirmed_goes_however_often_its_removal_fails() {
    assert_survives(async |place| {
        let (services, actor) = (&place.lab.services, &place.actor);
        let wanted = BeginUpload {
            path: FilePath::parse("a.csv").unwrap(),
            content_type: None,
            execution: None,
            instrument: Some(place.instrument),
            source: None,
        };
        let begun = begin_upload(services, actor, wanted).await?.file;
        let body: ByteStream = Box::pin(futures::stream::iter([Ok(Bytes::from_static(b"x"))]));
        let object = begun.state.object();
        services
            .blobs
            .put_new(actor.organization, object, body, 1)
            .await
            .unwrap();
        place.lab.clock.advance(Duration::hours(50));
        sweep_uploads(&place.faulty).await?;
        sweep_objects(&place.faulty).await?;
        Ok(Vec::new())
    })
    .await;
}

#[tokio::test]
async fn a_deleted_file_goes_with_each_failure_of_the_storage() {
    assert_survives(async |place| {
        let file = upload_file(&place.lab.services, &place.actor, place.upload("a.csv")).await?;
        let other = upload_file(&place.lab.services, &place.actor, place.upload("b.csv")).await?;
        let mut faulty = place.faulty.clone();
        faulty.trash_days = 0;
        delete_file(&faulty, &place.actor, file.id).await?;
        Ok(vec![other.state.object()])
    })
    .await;
}

#[tokio::test]
async fn a_purged_file_goes_with_each_failure_of_the_storage() {
    assert_survives(async |place| {
        let file = upload_file(&place.lab.services, &place.actor, place.upload("a.csv")).await?;
        let other = upload_file(&place.lab.services, &place.actor, place.upload("b.csv")).await?;
        delete_file(&place.faulty, &place.actor, file.id).await?;
        place.lab.clock.advance(Duration::days(31));
        sweep_trash(&place.faulty).await?;
        // Again, where the object could not be removed; then that is left to the sweep.
        assert_eq!(sweep_trash(&place.faulty).await?, 0);
        Ok(vec![other.state.object()])
    })
    .await;
}

#[tokio::test]
async fn a_dataset_survives_each_failure_of_the_storage() {
    assert_survives(async |place| {
        let file = upload_file(&place.lab.services, &place.actor, place.upload("a.csv")).await?;
        let source = SnapshotSource::File(file.id, Box::default());
        let command = CreateDataset {
            name: "plates".to_owned(),
            description: None,
            snapshot: take_snapshot(&place.faulty, &place.actor, source).await?,
        };
        let created = create_dataset(&place.faulty, &place.actor, command).await?;
        Ok(vec![created.dataset.object, file.state.object()])
    })
    .await;
}
