//! Writing of a snapshot into the storage: a thread encodes the rows, and its bytes are the body of
//! a new object.
//!
//! Encoding takes seconds of a processor, so it is done by a thread for it. Bounded channels connect
//! the thread with the query and the storage: the slowest of the three sets the pace. When one of them
//! fails, the rest end.

pub(super) mod masks;
mod outlet;
pub(super) mod table;

use std::{sync::Arc, thread};

use futures::{
    channel::{mpsc, oneshot},
    future::join,
};
use labdata_domain::{
    files::ObjectKey,
    models::{DatasetRefusal, MAX_DATASET_BYTES},
};
use labdata_ports::{data::query::QueryError, files::blob::PutBlobError};

pub(super) use outlet::Outlet;
use outlet::body_of;
use table::{SnapshotError, WrittenTable};

use crate::{
    Error, Services,
    files::{ongoing_uploads::OngoingUpload, upload_room::checked},
};

/// Number of chunks of the object that wait for the storage.
const WAITING_PIECES: usize = 4;

/// Table in the storage.
#[derive(Debug)]
pub(super) struct StoredTable {
    pub(super) table: WrittenTable,
    /// Size of the object in bytes.
    pub(super) size: u64,
}

/// Creates the object of what `work` writes in a thread, while `supply` hands rows to it.
pub(super) async fn store(
    services: &Services,
    (object, upload): (ObjectKey, &Arc<OngoingUpload>),
    work: impl FnOnce(&mut Outlet) -> Result<WrittenTable, SnapshotError> + Send + 'static,
    supply: impl Future<Output = Result<(), QueryError>>,
) -> Result<StoredTable, Error> {
    let (sender, chunks) = mpsc::channel(WAITING_PIECES);
    let (done, outcome) = oneshot::channel();
    let thread = thread::Builder::new().name("snapshot".to_owned());
    let spawned = thread.spawn(move || {
        let mut outlet = Outlet::new(sender);
        let written = work(&mut outlet).and_then(|table| {
            outlet.end()?;
            Ok(table)
        });
        // The receiver no longer exists if the request was abandoned.
        let _ = done.send(written);
    });
    spawned.map_err(|error| Error::Internal(format!("no thread for a snapshot: {error}")))?;
    let (body, cut_off) = checked(services, upload, false, body_of(chunks));
    let storing = services
        .blobs
        .put_new(upload.organization(), object, body, MAX_DATASET_BYTES);
    // Concurrently: through the bounded channels, each waits for the other.
    let (supplied, stored) = join(supply, storing).await;
    let written = outcome
        .await
        .unwrap_or_else(|_| Err(SnapshotError::Failed("the thread ended early".to_owned())));
    match (supplied, written, stored) {
        (Ok(()), Ok(table), Ok(stored)) => Ok(StoredTable {
            table,
            size: stored.size,
        }),
        // The earliest cause first: a failed query also ends the writer and the upload.
        (Err(QueryError::Refused(failure)), ..) => Err(Error::refused(failure)),
        (Err(QueryError::Port(error)), ..) => Err(error.into()),
        (_, Err(SnapshotError::Refused(refusal)), _) => Err(refusal.into()),
        (_, Err(SnapshotError::Failed(text)), _) => Err(Error::Internal(text)),
        (supplied, written, stored) => {
            if let Some(reason) = cut_off.reason() {
                return Err(reason.into());
            }
            Err(match stored {
                Err(PutBlobError::TooLarge { .. }) => Error::refused(DatasetRefusal::TooLarge),
                Err(PutBlobError::Port(error)) => error.into(),
                stored => {
                    Error::Internal(format!("a snapshot: {supplied:?}, {written:?}, {stored:?}"))
                }
            })
        }
    }
}
