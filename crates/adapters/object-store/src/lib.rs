//! Object storage on the local disk and in clouds, signed URLs, checksums.
//!
//! **Invariants.** An object's path is made of two ids (see `object_path.rs`), never of anything that
//! a client sent. Objects are created, read and removed, never changed. Acknowledged objects are on
//! the disk: file and directory are synced before the response. No body is ever held as a whole.
//!
//! Reading, sizes and removal go through [`object_store::ObjectStore`] for every backend; each
//! backend creates objects in its own way ([`LocalBlobStore`], [`CloudBlobStore`]).

mod bucket;
mod canonical;
mod cloud;
mod direct;
mod http_client;
mod incoming;
mod local;
mod location;
mod object_path;
mod reading;
mod service_sas;
mod signer;

use std::{fmt::Display, path::PathBuf, sync::Arc};

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
    /// Storage URL that could not be opened.
    pub location: String,
    /// Message of the storage, in one line.
    pub reason: String,
}

impl OpenError {
    fn new(location: &Location, reason: &dyn Display) -> Self {
        // Clouds response with pages of XML.
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

/// An opened storage.
pub struct Storage {
    /// Its objects.
    pub blobs: Arc<dyn BlobStore>,
    /// The bucket, for [`DirectSigner`]; `None` for a directory.
    pub bucket: Option<Bucket>,
}

/// Opens the storage of a location and checks that it accepts objects. Buckets are reached with the
/// cloud's usual environment variables; copies of their objects that are read from any position are
/// unnamed files of the directory `copies`.
///
/// # Errors
/// [`OpenError`] when the storage cannot be reached or refuses objects.
pub async fn open(
    location: &Location,
    environment: &[Variable],
    copies: PathBuf,
) -> Result<Storage, OpenError> {
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
                blobs: Arc::new(CloudBlobStore::new(bucket.clone(), copies)),
                bucket: Some(bucket),
            })
        }
    }
}
