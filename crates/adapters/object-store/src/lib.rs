//! Object storage: local disk today, the clouds behind the same port; signed URLs; checksums.
//!
//! **Invariants.** An object's place is made of two ids (see `place.rs`), never of anything that a
//! client sent. Objects are created, read and removed, never changed. What was acknowledged is on
//! the disk: file and directory are synced before the answer. No body is ever held as a whole.
//!
//! Reading, sizes and removal go through [`object_store::ObjectStore`] for every backend; creating
//! is each one's own ([`LocalBlobStore`], [`CloudBlobStore`]).

mod bucket;
mod canonical;
mod cloud;
mod direct;
mod http_client;
mod incoming;
mod local;
mod location;
mod place;
mod reading;
mod service_sas;
mod signer;

use std::{fmt::Display, sync::Arc};

use labdata_ports::files::blob::BlobStore;

pub use bucket::{Bucket, Variable};
pub use cloud::CloudBlobStore;
pub use direct::{DirectSigner, NeedsAccountKey};
pub use local::LocalBlobStore;
pub use location::{Cloud, InvalidLocation, Location, UploadMode};
pub use signer::{GatewaySigner, STORAGE_PATH};

/// The storage could not be opened; one line for the person who set it.
#[derive(Debug, thiserror::Error)]
#[error("cannot use {location} as the file storage: {reason}")]
pub struct OpenError {
    /// What was to be opened.
    pub location: String,
    /// Why not.
    pub reason: String,
}

impl OpenError {
    fn new(location: &Location, reason: &dyn Display) -> Self {
        // Clouds explain themselves in pages of XML.
        let reason: Vec<String> = reason
            .to_string()
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        Self {
            location: location.to_string(),
            reason: reason.join(" "),
        }
    }
}

/// A storage, opened.
pub struct Storage {
    /// Its objects.
    pub blobs: Arc<dyn BlobStore>,
    /// The bucket, where it is one: what [`DirectSigner`] needs.
    pub bucket: Option<Bucket>,
}

/// Opens the storage of that location and makes sure that it takes objects. Buckets are reached
/// with the cloud's usual variables of that environment.
///
/// # Errors
/// [`OpenError`] when it does not.
pub async fn open(location: &Location, environment: &[Variable]) -> Result<Storage, OpenError> {
    match location {
        Location::Local(directory) => Ok(Storage {
            blobs: Arc::new(LocalBlobStore::open(directory).await?),
            bucket: None,
        }),
        Location::Bucket {
            cloud,
            name,
            prefix,
        } => {
            let bucket = Bucket::open(location, (*cloud, name, prefix), environment).await?;
            Ok(Storage {
                blobs: Arc::new(CloudBlobStore::new(bucket.clone())),
                bucket: Some(bucket),
            })
        }
    }
}
