//! A storage that fails, for tests.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use async_trait::async_trait;
use futures::stream::BoxStream;
use labdata_domain::{
    files::{ObjectKey, StoredBytes},
    ids::OrganizationId,
};
use labdata_ports::{
    PortError,
    files::blob::{BlobBody, BlobReader, BlobStore, ByteStream, PutBlobError},
};

/// Moment of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultMoment {
    /// The call has no effect.
    Before,
    /// The call has its effect, and its response is lost.
    After,
}

/// Another storage of which one call fails. Listing the objects is no such call.
pub struct FaultyBlobStore {
    inner: Arc<dyn BlobStore>,
    calls: AtomicU32,
    fails_at: u32,
    moment: FaultMoment,
}

impl FaultyBlobStore {
    /// The storage whose call of that number, from 1, fails.
    #[must_use]
    pub fn new(inner: &Arc<dyn BlobStore>, fails_at: u32, moment: FaultMoment) -> Self {
        Self {
            inner: Arc::clone(inner),
            calls: AtomicU32::new(0),
            fails_at,
            moment,
        }
    }

    /// Returns whether the call has been made.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.calls.load(Ordering::Relaxed) >= self.fails_at
    }

    async fn call<T, E: From<PortError>>(
        &self,
        call: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let fails = self.calls.fetch_add(1, Ordering::Relaxed) + 1 == self.fails_at;
        let failure = || E::from(PortError::Unavailable("injected".to_owned()));
        if fails && self.moment == FaultMoment::Before {
            return Err(failure());
        }
        let outcome = call.await;
        if fails { Err(failure()) } else { outcome }
    }
}

#[async_trait]
impl BlobStore for FaultyBlobStore {
    async fn put_new(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
        body: ByteStream,
        limit: u64,
    ) -> Result<StoredBytes, PutBlobError> {
        let put = self.inner.put_new(organization, object, body, limit);
        self.call(put).await
    }

    async fn read(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
        range: Option<Range<u64>>,
    ) -> Result<BlobBody, PortError> {
        self.call(self.inner.read(organization, object, range))
            .await
    }

    async fn open(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
    ) -> Result<Box<dyn BlobReader>, PortError> {
        self.call(self.inner.open(organization, object)).await
    }

    async fn size(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
    ) -> Result<u64, PortError> {
        self.call(self.inner.size(organization, object)).await
    }

    async fn checksum(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
    ) -> Result<StoredBytes, PortError> {
        self.call(self.inner.checksum(organization, object)).await
    }

    async fn delete(
        &self,
        organization: OrganizationId,
        object: ObjectKey,
    ) -> Result<(), PortError> {
        self.call(self.inner.delete(organization, object)).await
    }

    fn objects(&self) -> BoxStream<'_, Result<(OrganizationId, ObjectKey), PortError>> {
        self.inner.objects()
    }

    async fn probe(&self) -> Result<(), PortError> {
        self.inner.probe().await
    }
}
