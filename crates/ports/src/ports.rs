//! All ports of one server, which a set of adapters composes.

use std::{
    fmt,
    ops::{Deref, DerefMut},
    sync::Arc,
};

use crate::{
    Clock, IdSource, Repositories,
    agent::PythonSandbox,
    data::query::QueryRunner,
    files::blob::{BlobStore, UrlSigner},
    idempotency::Idempotency,
    instruments::FileReader,
    maintenance::{DependencyChecks, DiskReserve},
    models::Predictor,
    reading::TableReader,
};

/// The ports of one server.
#[derive(Clone)]
pub struct Ports {
    /// Ports of the store. Their fields are reached as this value's own.
    pub repositories: Repositories,
    /// Requests that have their effect once, in units of work of the store.
    pub idempotency: Arc<dyn Idempotency>,
    /// Queries in SQL.
    pub queries: Arc<dyn QueryRunner>,
    /// Bytes of files and datasets.
    pub blobs: Arc<dyn BlobStore>,
    /// URLs that carry their own permission.
    pub signer: Arc<dyn UrlSigner>,
    /// URLs of the platform that carry their own permission, also where `signer` makes those of a cloud:
    /// for processes that reach nothing but the platform.
    pub gateway: Arc<dyn UrlSigner>,
    /// Trained models that predict.
    pub predictor: Arc<dyn Predictor>,
    /// Python snippets of the agent.
    pub python: Arc<dyn PythonSandbox>,
    /// Readers of files of instruments.
    pub file_reader: Arc<dyn FileReader>,
    /// Readers of tables out of files.
    pub table_reader: Arc<dyn TableReader>,
    /// State of what this server depends on.
    pub dependencies: Arc<dyn DependencyChecks>,
    /// Reserve of disk space.
    pub disk_reserve: Arc<dyn DiskReserve>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Identifiers and random bytes.
    pub ids: Arc<dyn IdSource>,
}

impl Deref for Ports {
    type Target = Repositories;

    fn deref(&self) -> &Repositories {
        &self.repositories
    }
}

impl DerefMut for Ports {
    fn deref_mut(&mut self) -> &mut Repositories {
        &mut self.repositories
    }
}

impl fmt::Debug for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ports").finish_non_exhaustive()
    }
}
