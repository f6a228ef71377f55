//! Takes new files into the index of searches. No caller asks for it: it is the platform's own
//! housekeeping, and several servers may do it at once.

use time::Duration;

use crate::{Error, Ports};

/// Files are taken in some time after they were confirmed: by then those have been stored too that
/// were confirmed a little earlier, on another server or in a longer transaction.
const SETTLED_AFTER: Duration = Duration::seconds(10);

/// Takes files in that were confirmed some seconds ago; returns how many.
///
/// # Errors
/// What the port answers.
pub async fn index_files(ports: &Ports) -> Result<u64, Error> {
    let before = ports.clock.now() - SETTLED_AFTER;
    Ok(ports.files.index_new(before).await?)
}
