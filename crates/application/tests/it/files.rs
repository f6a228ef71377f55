//! Uploads, where a port fails or another is faster.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use labdata_application::{
    Error, Services,
    files::{
        begin_upload::{BeginUpload, begin_upload},
        confirm_upload::confirm_upload,
        delete_file::delete_file,
        list_files::list_files,
        receive_upload::{admit_upload, open_upload, receive_upload},
        sweep_uploads::sweep_uploads,
        upload_file::{UploadFile, record_upload, store_upload},
    },
    maintenance::disk_reserve::keep_reserve,
};
use labdata_domain::{
    executions::{Execution, ExecutionState, Origin, started_by::StartedBy},
    files::{
        Crc32c, File, FileFilter, FilePath, MAX_FILE_BYTES, ObjectKey, SourceType, StoredBytes,
    },
    ids::InstrumentId,
    instruments::Instrument,
    jobs::{Job, JobName},
    page::PageRequest,
    people::{actor::Actor, scope::Scope},
    refusal::{Refusal, RefusalKind},
    storage::{InsufficientStorage, ReserveState, StorageQuota},
};
use labdata_memory::InMemoryDiskReserve;
use labdata_ports::{
    PortError,
    files::{
        AddFileError, ConfirmFileError, MockFileRepository,
        blob::{BlobBody, ByteStream, MockBlobStore, PutBlobError, SignedRequest},
    },
    maintenance::DiskReserve,
};
use mockall::predicate::eq;

use crate::lab::Lab;

/// A storage as large as needed.
pub(crate) fn mock_blobs() -> MockBlobStore {
    let mut blobs = MockBlobStore::new();
    blobs.expect_disk_space().returning(|| Ok(None));
    blobs
}

const BYTES: StoredBytes = StoredBytes {
    size: 1,
    crc32c: Crc32c::new(7),
};
const ALL: PageRequest = PageRequest {
    limit: None,
    after: None,
};

/// Uploads a file.
pub(crate) async fn upload_file(
    services: &Services,
    actor: &Actor,
    command: UploadFile,
) -> Result<File, Error> {
    let stored = store_upload(services, actor, command).await?;
    record_upload(services, actor, stored).await
}

/// A new instrument.
pub(crate) async fn instrument(lab: &Lab) -> InstrumentId {
    let instrument = Instrument {
        id: lab.services.ids.next_id().into(),
        name: "reader".to_owned(),
        description: None,
        instrument_type: None,
        reader: None,
        timezone: None,
        last_reader: None,
        created_at: lab.services.clock.now(),
    };
    let organization = lab.actor(&[]).organization;
    lab.services
        .instruments
        .add(organization, &instrument)
        .await
        .unwrap();
    instrument.id
}

/// The upload by a signed URL that [`upload`] makes at once.
pub(crate) fn wanted(instrument: InstrumentId) -> BeginUpload {
    BeginUpload {
        path: FilePath::parse("a.csv").unwrap(),
        content_type: None,
        execution: None,
        instrument: Some(instrument),
        source: None,
    }
}

/// An upload of one byte.
pub(crate) fn upload(instrument: InstrumentId) -> UploadFile {
    UploadFile {
        path: FilePath::parse("a.csv").unwrap(),
        content_type: None,
        execution: None,
        instrument: Some(instrument),
        source: None,
        bytes: Bytes::from_static(b"x"),
    }
}

#[tokio::test]
async fn bytes_stay_where_it_is_unknown_whether_they_were_recorded() {
    let lab = Lab::new().await;
    let instrument = instrument(&lab).await;
    let (mut records, mut blobs) = (MockFileRepository::new(), mock_blobs());
    blobs
        .expect_put_new()
        .once()
        .returning(|_, _, _, _| Ok(BYTES));
    blobs.expect_delete().never();
    let down = || AddFileError::Port(PortError::Unavailable("down".to_owned()));
    records
        .expect_add()
        .once()
        .returning(move |_, _, _, _| Err(down()));
    let mut services = lab.services.clone();
    services.files = Arc::new(records);
    services.blobs = Arc::new(blobs);
    let failed = upload_file(&services, &lab.actor(&[Scope::Write]), upload(instrument)).await;
    assert!(matches!(failed, Err(Error::Unavailable(_))), "{failed:?}");
}

#[tokio::test]
async fn bytes_of_a_refused_file_are_removed() {
    let lab = Lab::new().await;
    let instrument = instrument(&lab).await;
    let refusals: [fn() -> AddFileError; 3] = [
        || AddFileError::PathTaken,
        || AddFileError::ExecutionClosed,
        || AddFileError::UnknownInstrument,
    ];
    for refusal in refusals {
        let (mut records, mut blobs) = (MockFileRepository::new(), mock_blobs());
        blobs
            .expect_put_new()
            .once()
            .returning(|_, _, _, _| Ok(BYTES));
        blobs.expect_delete().once().returning(|_, _| Ok(()));
        records
            .expect_are_objects_retained()
            .returning(|| Ok(false));
        records
            .expect_add()
            .once()
            .returning(move |_, _, _, _| Err(refusal()));
        let mut services = lab.services.clone();
        services.files = Arc::new(records);
        services.blobs = Arc::new(blobs);
        let refused = upload_file(&services, &lab.actor(&[Scope::Write]), upload(instrument)).await;
        assert!(
            matches!(
                refused,
                Err(Error::Refused(Refusal {
                    kind: RefusalKind::Conflict | RefusalKind::Invalid | RefusalKind::NotFound,
                    ..
                }))
            ),
            "{refused:?}"
        );
    }
}

#[tokio::test]
async fn objects_stay_while_a_backup_copies_them_or_nobody_knows() {
    let lab = Lab::new().await;
    let instrument = instrument(&lab).await;
    let responses: [fn() -> Result<bool, PortError>; 2] = [
        || Ok(true),
        || Err(PortError::Unavailable("down".to_owned())),
    ];
    for response in responses {
        let (mut records, mut blobs) = (MockFileRepository::new(), mock_blobs());
        blobs
            .expect_put_new()
            .once()
            .returning(|_, _, _, _| Ok(BYTES));
        blobs.expect_delete().never();
        blobs.expect_sweep_unfinished().returning(|_| Ok(0));
        records.expect_are_objects_retained().returning(response);
        records
            .expect_add()
            .once()
            .returning(|_, _, _, _| Err(AddFileError::PathTaken));
        let object = (
            lab.actor(&[]).organization,
            ObjectKey::new(lab.services.ids.next_id()),
        );
        let mut expired = vec![Vec::new(), vec![object]];
        records
            .expect_take_expired()
            .returning(move |_, _| Ok(expired.pop().unwrap_or_default()));
        let mut services = lab.services.clone();
        services.files = Arc::new(records);
        services.blobs = Arc::new(blobs);
        let refused = upload_file(&services, &lab.actor(&[Scope::Write]), upload(instrument)).await;
        assert!(
            matches!(
                refused,
                Err(Error::Refused(Refusal {
                    kind: RefusalKind::Conflict,
                    ..
                }))
            ),
            "{refused:?}"
        );
        let swept = sweep_uploads(&services).await;
        assert_eq!(swept.is_ok(), response().is_ok());
    }
}

#[tokio::test]
async fn nothing_is_recorded_without_its_bytes() {
    let lab = Lab::new().await;
    let instrument = instrument(&lab).await;
    let (mut records, mut blobs) = (MockFileRepository::new(), mock_blobs());
    let full = || PutBlobError::Port(PortError::DiskFull("disk full".to_owned()));
    blobs
        .expect_put_new()
        .once()
        .returning(move |_, _, _, _| Err(full()));
    records.expect_add().never();
    let mut services = lab.services.clone();
    services.files = Arc::new(records);
    services.blobs = Arc::new(blobs);
    let failed = upload_file(&services, &lab.actor(&[Scope::Write]), upload(instrument)).await;
    let full = InsufficientStorage::DiskFull;
    assert!(
        matches!(&failed, Err(Error::Refused(refusal)) if *refusal == full.into()),
        "{failed:?}"
    );
}

#[tokio::test]
async fn what_a_platform_run_script_uploads_belongs_to_its_execution() {
    let lab = Lab::new().await;
    let mut actor = lab.actor(&[Scope::Read, Scope::Write]);
    let now = lab.services.clock.now();
    let name = JobName::parse("parser").unwrap();
    let job = Job::new(lab.services.ids.next_id().into(), name, now);
    let job = lab
        .services
        .jobs
        .ensure(actor.organization, &job)
        .await
        .unwrap();
    let execution = Execution {
        id: lab.services.ids.next_id().into(),
        job_id: job.id,
        job_name: job.name,
        origin: Origin::OffPlatform,
        state: ExecutionState::start(now, None),
        created_at: now,
        started_at: Some(now),
    };
    lab.services
        .executions
        .add(actor.organization, &execution, StartedBy::user(actor.user))
        .await
        .unwrap();
    actor.execution = Some(execution.id);
    let file = upload_file(&lab.services, &actor, upload(instrument(&lab).await))
        .await
        .unwrap();
    assert_eq!(file.attribution.execution(), Some(execution.id));
    assert_eq!(file.source_type, SourceType::JobArtifact);
    let listed = list_files(&lab.services, &actor, &FileFilter::default(), ALL)
        .await
        .unwrap();
    assert_eq!(listed.items, [file]);
}

#[tokio::test]
async fn an_upload_that_was_superseded_while_it_was_checked_is_not_confirmed() {
    let lab = Lab::new().await;
    let actor = lab.actor(&[Scope::Write]);
    let wanted = BeginUpload {
        path: FilePath::parse("a.csv").unwrap(),
        content_type: None,
        execution: None,
        instrument: Some(instrument(&lab).await),
        source: None,
    };
    let file = begin_upload(&lab.services, &actor, wanted)
        .await
        .unwrap()
        .file;
    let object = file.state.object();
    let body: ByteStream = Box::pin(futures::stream::iter([Ok(Bytes::from_static(b"x"))]));
    lab.services
        .blobs
        .put_new(actor.organization, object, body, 1)
        .await
        .unwrap();
    let mut records = MockFileRepository::new();
    let (id, found) = (file.id, file);
    records
        .expect_get()
        .returning(move |_, _| Ok(found.clone()));
    records
        .expect_confirm()
        .with(
            eq(actor.organization),
            eq(id),
            eq(object),
            mockall::predicate::always(),
            eq(StorageQuota::UNLIMITED),
            mockall::predicate::always(),
        )
        .once()
        .returning(|_, _, _, _, _, _| Err(ConfirmFileError::Superseded));
    let mut services = lab.services.clone();
    services.files = Arc::new(records);
    let refused = confirm_upload(&services, &actor, id).await;
    assert!(
        matches!(
            refused,
            Err(Error::Refused(Refusal {
                kind: RefusalKind::Invalid,
                ..
            }))
        ),
        "{refused:?}"
    );
}

#[tokio::test]
async fn what_the_gateway_received_is_not_read_again_by_the_confirmation() {
    let lab = Lab::new().await;
    let actor = lab.actor(&[Scope::Write]);
    let command = wanted(instrument(&lab).await);
    let begun = begin_upload(&lab.services, &actor, command).await.unwrap();
    let request = SignedRequest {
        method: "PUT",
        path: begun
            .upload
            .url
            .strip_prefix("http://memory.invalid")
            .unwrap(),
        query: "",
        headers: &begun.upload.headers,
    };
    let upload = open_upload(&lab.services, &request).await.unwrap();
    let body: ByteStream = Box::pin(futures::stream::iter([Ok(Bytes::from_static(
        b"123456789",
    ))]));
    let admitted = admit_upload(&lab.services, &upload, Some(9)).await.unwrap();
    let stored = receive_upload(&lab.services, &admitted, body)
        .await
        .unwrap();
    // A storage that can do no more than show the beginning.
    let mut blobs = mock_blobs();
    blobs
        .expect_read()
        .withf(|_, _, range| range.as_ref().is_some_and(|range| range.end < 100_000))
        .returning(|_, _, _| {
            Ok(BlobBody {
                size: 9,
                bytes: futures::stream::iter([Ok(Bytes::from_static(b"123456789"))]).boxed(),
            })
        });
    let mut services = lab.services.clone();
    services.blobs = Arc::new(blobs);
    let file = confirm_upload(&services, &actor, begun.file.id)
        .await
        .unwrap();
    assert_eq!(file.state.bytes(), Some(stored));
}

#[tokio::test]
async fn what_a_cloud_took_beyond_the_limit_is_discarded_with_its_record() {
    let lab = Lab::new().await;
    let actor = lab.actor(&[Scope::Write]);
    let command = wanted(instrument(&lab).await);
    let begun = begin_upload(&lab.services, &actor, command).await.unwrap();
    // The cloud alone knows how long it is.
    let mut blobs = mock_blobs();
    blobs
        .expect_size()
        .once()
        .returning(|_, _| Ok(MAX_FILE_BYTES + 1));
    let removed = (eq(actor.organization), eq(begun.file.state.object()));
    blobs
        .expect_delete()
        .with(removed.0, removed.1)
        .once()
        .returning(|_, _| Ok(()));
    let mut services = lab.services.clone();
    services.blobs = Arc::new(blobs);
    let reader = confirm_upload(&services, &lab.actor(&[Scope::Read]), begun.file.id).await;
    assert!(
        matches!(
            reader,
            Err(Error::Refused(Refusal {
                kind: RefusalKind::Forbidden,
                ..
            }))
        ),
        "{reader:?}"
    );
    let refused = confirm_upload(&services, &actor, begun.file.id).await;
    assert!(
        matches!(
            refused,
            Err(Error::Refused(Refusal {
                kind: RefusalKind::Invalid,
                ..
            }))
        ),
        "{refused:?}"
    );
    let deleted = confirm_upload(&services, &actor, begun.file.id).await;
    assert!(
        matches!(
            deleted,
            Err(Error::Refused(Refusal {
                kind: RefusalKind::NotFound,
                ..
            }))
        ),
        "{deleted:?}"
    );
}

#[tokio::test]
async fn while_the_reserve_is_given_up_only_removals_are_accepted() {
    let lab = Lab::new().await;
    let instrument = instrument(&lab).await;
    let reserve = Arc::new(InMemoryDiskReserve::new(ReserveState {
        size: 64,
        held: true,
        available: 200,
    }));
    let mut services = lab.services.clone();
    services.disk_reserve = reserve.clone();
    let actor = lab.actor(&[Scope::Read, Scope::Write]);
    keep_reserve(&services).await.unwrap();
    let stored = upload_file(&services, &actor, upload(instrument))
        .await
        .unwrap();

    reserve.set_available(31);
    keep_reserve(&services).await.unwrap();
    assert!(!reserve.is_held());
    let mut other = upload(instrument);
    other.path = FilePath::parse("other.csv").unwrap();
    for _ in 0..2 {
        let refused = upload_file(&services, &actor, other.clone()).await;
        assert!(
            matches!(
                refused,
                Err(Error::Refused(Refusal {
                    kind: RefusalKind::InsufficientStorage,
                    ..
                }))
            ),
            "{refused:?}"
        );
        // What was given up is not taken again at once.
        keep_reserve(&services).await.unwrap();
    }
    let all = list_files(&services, &actor, &FileFilter::default(), ALL).await;
    assert_eq!(all.unwrap().items.len(), 1);
    delete_file(&services, &actor, stored.id).await.unwrap();

    reserve.set_available(128);
    keep_reserve(&services).await.unwrap();
    assert!(reserve.is_held());
    upload_file(&services, &actor, other).await.unwrap();
}
