//! Object storage: local disk today, the clouds behind the same port; signed URLs; checksums.
//!
//! **Invariants.** An object's place is made of two ids (see `place.rs`), never of anything that a
//! client sent. Objects are created, read and removed, never changed. What was acknowledged is on
//! the disk: file and directory are synced before the answer. No body is ever held as a whole.
//!
//! [`open`] is the seam for further backends: reading, sizes and removal already go through
//! [`object_store::ObjectStore`]; only creating is local disk's own, as only it needs a file that
//! becomes visible whole and by a hard link.

mod canonical;
mod incoming;
mod local;
mod location;
mod place;
mod reading;
mod signer;

use std::sync::Arc;

use labdata_ports::blob::BlobStore;

pub use local::LocalBlobStore;
pub use location::{InvalidLocation, Location};
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

/// Opens the storage of that location and makes sure that it takes objects.
///
/// # Errors
/// [`OpenError`] when it does not.
pub async fn open(location: &Location) -> Result<Arc<dyn BlobStore>, OpenError> {
    match location {
        Location::Local(directory) => Ok(Arc::new(LocalBlobStore::open(directory).await?)),
    }
}
