//! Removes what uploads left behind. No caller asks for it: it is the platform's own housekeeping,
//! and several servers may do it at once.

use futures::TryStreamExt;
use labdata_domain::{files::ObjectKey, ids::OrganizationId};
use time::Duration;

use crate::{Error, Services, maintenance::freeing_space::freeing_space};

/// An upload that has written nothing for so long is dead: the server waits half a minute for the
/// next chunk of a body.
const DEAD_AFTER: Duration = Duration::hours(1);

/// Time that a record waits for its confirmation after its upload URL has expired.
const UNCONFIRMED_AFTER: Duration = Duration::hours(24);

/// Minimum age of an object without a record: older than any upload that
/// is still under way, as its key is made before its upload begins.
const UNREFERENCED_AFTER: Duration = Duration::hours(48);

/// Number of records or objects per batch.
const BATCH: u32 = 500;

/// Counts of removed records and objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Parts of uploads that died with their process.
    pub unfinished: u64,
    /// Records that were never confirmed, with what was uploaded for them.
    pub unconfirmed: u64,
}

/// Removes the parts of unfinished uploads, and records whose URL expired a day ago.
///
/// The record goes before its object. Where the process dies between the two,
/// [`sweep_objects`] finds the object.
///
/// # Errors
/// Errors of the ports.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn sweep_uploads(services: &Services) -> Result<Swept, Error> {
    let now = services.clock.now();
    let mut swept = Swept {
        unfinished: services.blobs.sweep_unfinished(now - DEAD_AFTER).await?,
        unconfirmed: 0,
    };
    loop {
        let expired = now - UNCONFIRMED_AFTER;
        // Records first: an object without a record is swept later, a record without its object could be confirmed.
        let take = || services.files.take_expired(expired, BATCH);
        let objects = freeing_space(services, take).await?;
        swept.unconfirmed += count(&objects);
        if objects.is_empty() {
            return Ok(swept);
        }
        if services.files.are_objects_retained().await? {
            // `sweep_objects` finds them after the backup.
            continue;
        }
        for (organization, object) in &objects {
            services.blobs.delete(*organization, *object).await?;
        }
    }
}

/// Looks at every object and removes those of some age to which no record refers: of uploads that
/// were discarded, deleted or superseded while their URL still worked, and of requests whose process
/// died before the record was stored. Removes nothing while a backup runs. Returns how many. Costs a
/// listing of the whole storage.
///
/// # Errors
/// Errors of the ports.
#[tracing::instrument(level = "debug", skip_all)]
pub async fn sweep_objects(services: &Services) -> Result<u64, Error> {
    let limit = services.clock.now() - UNREFERENCED_AFTER;
    let mut removed = 0;
    let batch = usize::try_from(BATCH).unwrap_or(usize::MAX);
    let mut batches = services.blobs.objects().try_chunks(batch);
    loop {
        let objects = match batches.try_next().await {
            Ok(None) => return Ok(removed),
            Ok(Some(objects)) => objects,
            // The chunk before the error is dropped; the next pass finds its objects again.
            Err(broken) => return Err(broken.1.into()),
        };
        let old = |(_, object): &(OrganizationId, ObjectKey)| {
            // Young objects may belong to uploads whose record is not committed yet.
            object.made_at().is_some_and(|made_at| made_at < limit)
        };
        let old: Vec<_> = objects.into_iter().filter(old).collect();
        if old.is_empty() {
            continue;
        }
        // One question for a batch: a bucket may hold millions of objects.
        let unreferenced = services.files.unreferenced(&old).await?;
        // After the question, so that a backup that began in between is seen.
        if services.files.are_objects_retained().await? {
            // A running backup may refer to them; the pass after it removes them.
            return Ok(removed);
        }
        removed += count(&unreferenced);
        for (organization, object) in unreferenced {
            services.blobs.delete(organization, object).await?;
        }
    }
}

fn count<T>(things: &[T]) -> u64 {
    u64::try_from(things.len()).unwrap_or(u64::MAX)
}
