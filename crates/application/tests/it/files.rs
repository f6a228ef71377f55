//! Uploads, where a port fails or another is faster.

use std::{ops::Range, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use labdata_application::{
    Error, Ports,
    begin_upload::{BeginUpload, begin_upload},
    confirm_upload::confirm_upload,
    list_files::list_files,
    sweep_uploads::sweep_uploads,
    upload_file::{UploadFile, upload_file},
};
use labdata_domain::{
    execution::{Execution, ExecutionState, Origin},
    file::{Crc32c, File, FileFilter, FilePath, ObjectKey, SourceType, StoredBytes},
    ids::{FileId, InstrumentId, OrganizationId},
    instrument::Instrument,
    job::{Job, JobName},
    page::{Page, PageRequest},
    scope::Scope,
};
use labdata_ports::{
    PortError,
    blob::{BlobBody, BlobStore, ByteStream, PutBlobError},
    files::{AddFileError, ConfirmFileError, FileRepository, Recorded},
};
use mockall::predicate::eq;
use time::OffsetDateTime;

use crate::lab::Lab;

mockall::mock! {
    Records {}

    #[async_trait]
    impl FileRepository for Records {
        async fn add(&self, organization: OrganizationId, file: &File, now: OffsetDateTime) -> Result<Recorded, AddFileError>;
        async fn get(&self, organization: OrganizationId, id: FileId) -> Result<File, PortError>;
        async fn list(&self, organization: OrganizationId, filter: &FileFilter, page: PageRequest) -> Result<Page<File>, PortError>;
        async fn confirm(&self, organization: OrganizationId, id: FileId, object: ObjectKey, bytes: StoredBytes, now: OffsetDateTime) -> Result<(File, bool), ConfirmFileError>;
        async fn delete(&self, organization: OrganizationId, id: FileId) -> Result<File, PortError>;
    }
}

mockall::mock! {
    Blobs {}

    #[async_trait]
    impl BlobStore for Blobs {
        async fn put_new(&self, organization: OrganizationId, object: ObjectKey, body: ByteStream, limit: u64) -> Result<StoredBytes, PutBlobError>;
        async fn read(&self, organization: OrganizationId, object: ObjectKey, range: Option<Range<u64>>) -> Result<BlobBody, PortError>;
        async fn size(&self, organization: OrganizationId, object: ObjectKey) -> Result<u64, PortError>;
        async fn checksum(&self, organization: OrganizationId, object: ObjectKey) -> Result<StoredBytes, PortError>;
        async fn delete(&self, organization: OrganizationId, object: ObjectKey) -> Result<(), PortError>;
        async fn sweep_unfinished(&self, begun_before: OffsetDateTime) -> Result<u64, PortError>;
        async fn probe(&self) -> Result<(), PortError>;
    }
}

const BYTES: StoredBytes = StoredBytes {
    size: 1,
    crc32c: Crc32c::new(7),
};
const ALL: PageRequest = PageRequest {
    limit: None,
    after: None,
};

async fn instrument(lab: &Lab) -> InstrumentId {
    let instrument = Instrument {
        id: lab.ports.ids.next_id().into(),
        name: "reader".to_owned(),
        description: None,
        instrument_type: None,
        created_at: lab.ports.clock.now(),
    };
    let organization = lab.actor(&[]).organization;
    lab.ports
        .instruments
        .add(organization, &instrument)
        .await
        .unwrap();
    instrument.id
}

fn upload(instrument: InstrumentId) -> UploadFile {
    UploadFile {
        path: FilePath::parse("a.csv").unwrap(),
        content_type: None,
        execution: None,
        instrument: Some(instrument),
        bytes: Bytes::from_static(b"x"),
    }
}

#[tokio::test]
async fn bytes_stay_where_it_is_unknown_whether_they_were_recorded() {
    let lab = Lab::new().await;
    let instrument = instrument(&lab).await;
    let (mut records, mut blobs) = (MockRecords::new(), MockBlobs::new());
    blobs
        .expect_put_new()
        .once()
        .returning(|_, _, _, _| Ok(BYTES));
    blobs.expect_delete().never();
    let down = || AddFileError::Port(PortError::Unavailable("down".to_owned()));
    records
        .expect_add()
        .once()
        .returning(move |_, _, _| Err(down()));
    let ports = Ports {
        files: Arc::new(records),
        blobs: Arc::new(blobs),
        ..lab.ports.clone()
    };
    let failed = upload_file(&ports, &lab.actor(&[Scope::Write]), upload(instrument)).await;
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
        let (mut records, mut blobs) = (MockRecords::new(), MockBlobs::new());
        blobs
            .expect_put_new()
            .once()
            .returning(|_, _, _, _| Ok(BYTES));
        blobs.expect_delete().once().returning(|_, _| Ok(()));
        records
            .expect_add()
            .once()
            .returning(move |_, _, _| Err(refusal()));
        let ports = Ports {
            files: Arc::new(records),
            blobs: Arc::new(blobs),
            ..lab.ports.clone()
        };
        let refused = upload_file(&ports, &lab.actor(&[Scope::Write]), upload(instrument)).await;
        assert!(
            matches!(
                refused,
                Err(Error::Conflict(_) | Error::Invalid(_) | Error::NotFound(_))
            ),
            "{refused:?}"
        );
    }
}

#[tokio::test]
async fn nothing_is_recorded_without_its_bytes() {
    let lab = Lab::new().await;
    let instrument = instrument(&lab).await;
    let (mut records, mut blobs) = (MockRecords::new(), MockBlobs::new());
    let full = || PutBlobError::Port(PortError::Unavailable("disk full".to_owned()));
    blobs
        .expect_put_new()
        .once()
        .returning(move |_, _, _, _| Err(full()));
    records.expect_add().never();
    let ports = Ports {
        files: Arc::new(records),
        blobs: Arc::new(blobs),
        ..lab.ports.clone()
    };
    let failed = upload_file(&ports, &lab.actor(&[Scope::Write]), upload(instrument)).await;
    assert!(matches!(failed, Err(Error::Unavailable(_))), "{failed:?}");
}

#[tokio::test]
async fn what_a_platform_run_script_uploads_belongs_to_its_execution() {
    let lab = Lab::new().await;
    let mut actor = lab.actor(&[Scope::Read, Scope::Write]);
    let now = lab.ports.clock.now();
    let name = JobName::parse("parser").unwrap();
    let job = Job::new(lab.ports.ids.next_id().into(), name, now);
    let job = lab
        .ports
        .jobs
        .ensure(actor.organization, &job)
        .await
        .unwrap();
    let execution = Execution {
        id: lab.ports.ids.next_id().into(),
        job_id: job.id,
        job_name: job.name,
        origin: Origin::OffPlatform,
        state: ExecutionState::start(now, None),
        created_at: now,
        started_at: Some(now),
    };
    lab.ports
        .executions
        .add(actor.organization, &execution, actor.user)
        .await
        .unwrap();
    actor.execution = Some(execution.id);
    let file = upload_file(&lab.ports, &actor, upload(instrument(&lab).await))
        .await
        .unwrap();
    assert_eq!(file.attribution.execution(), Some(execution.id));
    assert_eq!(file.source_type, SourceType::JobArtifact);
    let listed = list_files(&lab.ports, &actor, &FileFilter::default(), ALL)
        .await
        .unwrap();
    assert_eq!(listed.items, [file]);
}

#[tokio::test]
async fn an_upload_that_was_superseded_while_it_was_checked_is_not_confirmed() {
    let lab = Lab::new().await;
    let actor = lab.actor(&[Scope::Write]);
    let begin = BeginUpload {
        path: FilePath::parse("a.csv").unwrap(),
        content_type: None,
        execution: None,
        instrument: Some(instrument(&lab).await),
    };
    let file = begin_upload(&lab.ports, &actor, begin).await.unwrap().file;
    let object = file.state.object();
    let body: ByteStream = Box::pin(futures::stream::iter([Ok(Bytes::from_static(b"x"))]));
    lab.ports
        .blobs
        .put_new(actor.organization, object, body, 1)
        .await
        .unwrap();
    let mut records = MockRecords::new();
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
            mockall::predicate::always(),
        )
        .once()
        .returning(|_, _, _, _, _| Err(ConfirmFileError::Superseded));
    let ports = Ports {
        files: Arc::new(records),
        ..lab.ports.clone()
    };
    let refused = confirm_upload(&ports, &actor, id).await;
    assert!(matches!(refused, Err(Error::Conflict(_))), "{refused:?}");
}

#[tokio::test]
async fn the_sweeper_spares_uploads_of_the_last_hour() {
    let lab = Lab::new().await;
    let mut blobs = MockBlobs::new();
    let limit = lab.ports.clock.now() - time::Duration::hours(1);
    blobs
        .expect_sweep_unfinished()
        .with(eq(limit))
        .once()
        .returning(|_| Ok(3));
    let ports = Ports {
        blobs: Arc::new(blobs),
        ..lab.ports.clone()
    };
    assert_eq!(sweep_uploads(&ports).await.unwrap(), 3);
}
