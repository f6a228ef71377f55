//! Brings a backup back.

use std::{collections::HashSet, path::Path};

use anyhow::{Context, bail};
use futures::{StreamExt, TryStreamExt, stream};
use labdata_ports::{PortError, files::blob::BlobStore};

use super::{
    manifest::{DATABASE, Manifest, OBJECTS},
    objects::{self, AT_ONCE, check_copy, lines, put_back},
    write::{Summary, storage},
};
use crate::{
    compose::{ExistingDatabase, LocalBlobStore, Location, knows_migration},
    data_dir,
    settings::Settings,
};

/// Restores a backup into an empty data directory or database, and its objects into the configured storage.
/// An interrupted restore can be repeated. If the backup lists its objects only, the storage should have them:
/// a copy of the bucket, or the bucket itself.
///
/// # Errors
/// The reason; the database is as empty as before.
pub(super) async fn restore(settings: &Settings, directory: &Path) -> anyhow::Result<Summary> {
    let manifest = Manifest::read(directory)?;
    // An older backup is fine: the next start migrates it.
    if !knows_migration(&manifest.migration)? {
        bail!(
            "the backup is newer than this program: it was made by version {}",
            manifest.program
        );
    }
    // A damaged backup is refused before the target has been touched.
    manifest.database.check(&directory.join(DATABASE)).await?;
    manifest
        .objects
        .list
        .check(&directory.join(OBJECTS))
        .await?;
    if manifest.objects.are_included {
        check_copies(directory).await?;
    }
    let location: Location = settings.storage_url().parse()?;
    data_dir::check(&settings.data_dir)?;
    let opened = ExistingDatabase::open(settings).await?;
    let done = restore_into(&opened, settings, &location, directory, manifest).await;
    opened.close().await?;
    done
}

async fn restore_into(
    opened: &ExistingDatabase,
    settings: &Settings,
    location: &Location,
    directory: &Path,
    manifest: Manifest,
) -> anyhow::Result<Summary> {
    if !opened.is_empty().await? {
        bail!(
            "the database is in use: a backup is restored into an empty one; set LABDATA_DATA_DIR or DATABASE_URL to a new one"
        );
    }
    let programs = opened.programs().await?;
    let storage = storage(settings, location).await?;
    // A bucket is expected to hold the objects already, and perhaps many others.
    if matches!(location, Location::Local(_)) {
        refuse_others(&*storage, directory, location).await?;
    }
    let missing = if manifest.objects.are_included {
        // Before the database: records must not name objects that are not there yet.
        put_all_back(&*storage, directory).await?;
        Vec::new()
    } else {
        look_up(&*storage, directory).await?
    };
    let dump = directory.join(DATABASE);
    // Last, in one step: until then the database is empty and the restore can be repeated.
    opened.restore(&programs, &dump).await?;
    let mut objects = manifest.objects;
    objects.missing.extend(missing);
    Ok(Summary {
        database_bytes: manifest.database.bytes,
        objects: objects.count,
        object_bytes: objects.bytes,
        are_objects_included: objects.are_included,
        storage: location.to_string(),
        missing: objects.missing,
    })
}

/// Refuses a directory with objects that are not those of the backup.
async fn refuse_others(
    storage: &dyn BlobStore,
    directory: &Path,
    location: &Location,
) -> anyhow::Result<()> {
    let mut found = storage.objects();
    let Some(first) = found.try_next().await? else {
        return Ok(());
    };
    // Only now: a storage without objects, which is the usual one, needs no list of those of the backup.
    let own: HashSet<_> = lines(directory)?
        .map(|line| line?.ids())
        .collect::<anyhow::Result<_>>()?;
    let mut next = Some(first);
    while let Some(object) = next {
        if !own.contains(&object) {
            bail!(
                "{location} is in use: it has objects that are not of this backup; set LABDATA_STORAGE_URL or LABDATA_DATA_DIR to an empty directory"
            );
        }
        next = found.try_next().await?;
    }
    Ok(())
}

/// Refuses a backup with an object that is missing or damaged there.
pub(super) async fn check_copies(directory: &Path) -> anyhow::Result<()> {
    let backup = LocalBlobStore::open(&directory.join(objects::DIRECTORY)).await?;
    let backup = &backup;
    stream::iter(lines(directory)?)
        .map(|line| async move { check_copy(&line?, backup).await })
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await
}

pub(super) async fn put_all_back(storage: &dyn BlobStore, directory: &Path) -> anyhow::Result<()> {
    let from = LocalBlobStore::open(&directory.join(objects::DIRECTORY)).await?;
    let from = &from;
    stream::iter(lines(directory)?)
        .map(|line| async move { put_back(&line?, from, storage).await })
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await
}

/// Objects of the list that the storage does not have.
pub(super) async fn look_up(
    storage: &dyn BlobStore,
    directory: &Path,
) -> anyhow::Result<Vec<String>> {
    let mut missing: Vec<String> = stream::iter(lines(directory)?)
        .map(|line| async move {
            let line = line?;
            let (organization, object) = line.ids()?;
            match storage.size(organization, object).await {
                // Only the size: to compare checksums, every object of the bucket would have to be read.
                Ok(size) if size == line.size => Ok(None),
                Ok(_) | Err(PortError::NotFound(_)) => Ok(Some(format!("{organization}/{object}"))),
                Err(error) => Err(error).context("the storage"),
            }
        })
        .buffer_unordered(AT_ONCE)
        .try_filter_map(|missing| async move { anyhow::Ok(missing) })
        .try_collect()
        .await?;
    missing.sort_unstable();
    Ok(missing)
}
