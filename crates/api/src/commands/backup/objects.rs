//! The objects of a backup.

use std::{
    fs::File,
    io::{BufRead, BufReader, BufWriter, Write},
    path::Path,
};

use anyhow::{Context, bail};
use futures::{StreamExt, TryStreamExt, stream};
use labdata_domain::{
    files::{Crc32c, ObjectKey, StoredBytes},
    ids::OrganizationId,
};
use labdata_ports::{
    PortError,
    files::blob::{BlobStore, PutBlobError},
};
use serde::{Deserialize, Serialize};

use super::manifest::OBJECTS;
use crate::compose::{DatabaseSnapshot, LocalBlobStore, NeededObject};

/// Name of the directory of objects.
pub(super) const DIRECTORY: &str = "objects";

/// Number of objects that are copied or looked up at a time. Each waits for the disk at its end.
pub(super) const AT_ONCE: usize = 8;

/// A line of the list of objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Line {
    pub(super) organization: String,
    pub(super) object: String,
    /// Size in bytes.
    pub(super) size: u64,
    /// CRC-32C in base64, as the API shows it; missing if no record has it and nothing was copied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) crc32c: Option<String>,
}

impl Line {
    pub(super) fn ids(&self) -> anyhow::Result<(OrganizationId, ObjectKey)> {
        let ids = self.organization.parse().ok().zip(self.object.parse().ok());
        ids.with_context(|| format!("{OBJECTS} names an impossible object: {self:?}"))
    }
}

/// Result of the copy.
pub(super) struct Copied {
    pub(super) count: u64,
    pub(super) bytes: u64,
    pub(super) missing: Vec<String>,
}

/// All objects that the records of a snapshot need, in an unnamed file: there may be millions.
pub(super) async fn list(snapshot: &mut DatabaseSnapshot) -> anyhow::Result<File> {
    let mut file = BufWriter::new(tempfile::tempfile()?);
    loop {
        let batch = snapshot.next_objects().await?;
        if batch.is_empty() {
            return file.into_inner().map_err(|error| error.into_error().into());
        }
        for needed in batch {
            let line = (
                needed.organization.to_string(),
                needed.object.to_string(),
                needed.size,
                needed.crc32c.map(Crc32c::to_base64),
            );
            serde_json::to_writer(&mut file, &line)?;
            file.write_all(b"\n")?;
        }
    }
}

fn listed(mut file: File) -> anyhow::Result<impl Iterator<Item = anyhow::Result<NeededObject>>> {
    use std::io::Seek;
    file.rewind()?;
    let parsed = BufReader::new(file).lines().map(|line| {
        let (organization, object, size, crc32c): (String, String, Option<u64>, Option<String>) =
            serde_json::from_str(&line?)?;
        Ok(NeededObject {
            organization: organization.parse()?,
            object: object.parse()?,
            size,
            crc32c: crc32c.as_deref().and_then(Crc32c::from_base64),
        })
    });
    Ok(parsed)
}

/// Writes the list of objects and, if they are included, the objects themselves.
pub(super) async fn copy(
    source: &dyn BlobStore,
    needed: File,
    directory: &Path,
    are_included: bool,
) -> anyhow::Result<Copied> {
    let target = if are_included {
        Some(LocalBlobStore::open(&directory.join(DIRECTORY)).await?)
    } else {
        None
    };
    let mut list = BufWriter::new(File::create_new(directory.join(OBJECTS))?);
    let mut copied = Copied {
        count: 0,
        bytes: 0,
        missing: Vec::new(),
    };
    let target = target.as_ref();
    let mut done = stream::iter(listed(needed)?)
        .map(|needed| async move {
            let needed = needed?;
            anyhow::Ok((needed, one(source, needed, target).await?))
        })
        // The order of the list does not matter, so a large object delays no small ones.
        .buffer_unordered(AT_ONCE);
    while let Some((needed, found)) = done.try_next().await? {
        let (organization, object) = (needed.organization.to_string(), needed.object.to_string());
        let Some((size, crc32c)) = found else {
            // Lost, as the lock holds deletions back: a backup with a warning is worth more than none.
            copied.missing.push(format!("{organization}/{object}"));
            continue;
        };
        copied.count += 1;
        copied.bytes += size;
        let line = Line {
            organization,
            object,
            size,
            crc32c: crc32c.map(Crc32c::to_base64),
        };
        serde_json::to_writer(&mut list, &line)?;
        list.write_all(b"\n")?;
    }
    let list = list
        .into_inner()
        .map_err(std::io::IntoInnerError::into_error)?;
    // The manifest, which declares the backup whole, must not reach the disk before the list.
    list.sync_all()?;
    // They come in the order of completion, which differs from run to run.
    copied.missing.sort_unstable();
    Ok(copied)
}

/// Copies or looks up one object; `None` if the storage does not have it.
async fn one(
    source: &dyn BlobStore,
    needed: NeededObject,
    target: Option<&LocalBlobStore>,
) -> anyhow::Result<Option<(u64, Option<Crc32c>)>> {
    let (organization, object) = (needed.organization, needed.object);
    let found = match target {
        None => match source.size(organization, object).await {
            Ok(size) => (size, needed.crc32c),
            Err(PortError::NotFound(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        },
        Some(target) => match source.read(organization, object, None).await {
            Ok(body) => {
                // Without a limit: the object met that of its time when it was stored.
                let stored = target.put_new(organization, object, body.bytes, u64::MAX);
                let stored = stored.await?;
                (stored.size, Some(stored.crc32c))
            }
            Err(PortError::NotFound(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        },
    };
    // A backup of a damaged object would hide the damage until it is needed.
    let is_whole = needed.size.is_none_or(|size| size == found.0)
        && needed.crc32c.is_none_or(|crc32c| Some(crc32c) == found.1);
    if !is_whole {
        bail!(
            "the object {organization}/{object} of the storage is not what was uploaded: it is damaged"
        );
    }
    Ok(Some(found))
}

/// Lines of the list of objects.
pub(super) fn lines(
    directory: &Path,
) -> anyhow::Result<impl Iterator<Item = anyhow::Result<Line>>> {
    let file = File::open(directory.join(OBJECTS))?;
    let lines = BufReader::new(file).lines();
    Ok(lines
        .map(|line| serde_json::from_str(&line?).with_context(|| format!("{OBJECTS} is broken"))))
}

/// Refuses an object of a backup that is missing or damaged there.
pub(super) async fn check_copy(line: &Line, backup: &LocalBlobStore) -> anyhow::Result<()> {
    let (organization, object) = line.ids()?;
    let stored = backup.checksum(organization, object).await;
    let stored =
        stored.with_context(|| format!("the object {organization}/{object} of the backup"))?;
    if !is_same(line, stored) {
        bail!(
            "the object {organization}/{object} of the backup is damaged: restore another copy of the backup"
        );
    }
    Ok(())
}

/// Puts an object of a backup into a storage. One that is there already and is another is replaced: an interrupted
/// restore, or one of a damaged copy, is repeated.
pub(super) async fn put_back(
    line: &Line,
    from: &LocalBlobStore,
    storage: &dyn BlobStore,
) -> anyhow::Result<()> {
    let (organization, object) = line.ids()?;
    let put = async || {
        let body = from
            .read(organization, object, None)
            .await
            .with_context(|| format!("the object {organization}/{object} of the backup"))?;
        let put = storage.put_new(organization, object, body.bytes, u64::MAX);
        anyhow::Ok(put.await)
    };
    let stored = match put().await? {
        Err(PutBlobError::Exists) => {
            let stored = storage.checksum(organization, object).await?;
            if is_same(line, stored) {
                return Ok(());
            }
            // Of the two, the backup's fits.
            check_copy(line, from).await?;
            storage.delete(organization, object).await?;
            put().await??
        }
        stored => stored?,
    };
    if !is_same(line, stored) {
        bail!(
            "the object {organization}/{object} was damaged on its way from the backup into the storage"
        );
    }
    Ok(())
}

fn is_same(line: &Line, stored: StoredBytes) -> bool {
    let crc32c = stored.crc32c.to_base64();
    line.size == stored.size && line.crc32c.as_ref().is_none_or(|it| *it == crc32c)
}
