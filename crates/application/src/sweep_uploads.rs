//! Removes what uploads left behind when their process died.

use time::Duration;

use crate::{Error, Ports};

/// An upload that has written nothing for so long is dead: the server waits half a minute for the
/// next piece of a body.
const DEAD_AFTER: Duration = Duration::hours(1);

/// Removes the parts of unfinished uploads; returns how many. No caller asks for it: it is the
/// platform's own housekeeping, and several servers may do it at once.
///
/// # Errors
/// What the port answers.
pub async fn sweep_uploads(ports: &Ports) -> Result<u64, Error> {
    let begun_before = ports.clock.now() - DEAD_AFTER;
    Ok(ports.blobs.sweep_unfinished(begun_before).await?)
}
