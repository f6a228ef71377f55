//! A consistent copy of the whole platform: what the database holds, and the objects that its records name.
//!
//! A backup is a directory:
//!
//! | file | content |
//! |---|---|
//! | `database.dump` | the database, in the custom format of `pg_dump` |
//! | `objects.jsonl` | each object with its size and checksum |
//! | `objects/` | the objects, unless the storage is a bucket |
//! | `manifest.json` | what the backup is of, with the checksums of both files; written last |

use std::{
    fs::{self, DirBuilder},
    os::unix::fs::DirBuilderExt,
    path::Path,
    sync::Arc,
};

use anyhow::{Context, bail};
use labdata_application::audit::record_backup::record_backup;
use labdata_ports::{Clock, files::blob::BlobStore};

use super::{
    manifest::{self, Contents, DATABASE, MANIFEST, Manifest, OBJECTS, Objects},
    objects::{self, Copied, copy, list},
};
use crate::{
    commands::{existing::require_database, output::complain},
    compose::{ExistingDatabase, Location, open_storage},
    private_files::{OTHERS, adopt},
    settings::Settings,
    system::{SystemClock, SystemIds},
};

/// Contents of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Summary {
    /// Size of the database's copy in bytes.
    pub(super) database_bytes: u64,
    /// Number of objects.
    pub(super) objects: u64,
    /// Size of all objects in bytes.
    pub(super) object_bytes: u64,
    /// True if the objects are part of the backup, not only listed.
    pub(super) are_objects_included: bool,
    /// The storage in which they are otherwise.
    pub(super) storage: String,
    /// Objects that a record names and that the storage does not have.
    pub(super) missing: Vec<String>,
}

/// Opens the storage at a location.
pub(super) async fn storage(
    settings: &Settings,
    location: &Location,
) -> anyhow::Result<Arc<dyn BlobStore>> {
    let storage = open_storage(location, settings.data_dir.clone()).await?;
    Ok(storage.blobs)
}

/// Copies the platform into a directory that is new or empty, while servers run. Objects of a bucket are
/// listed only, unless `with_objects`.
///
/// # Errors
/// The reason. Nothing of an unfinished backup is left.
pub(super) async fn backup(
    settings: &Settings,
    directory: &Path,
    with_objects: bool,
) -> anyhow::Result<Summary> {
    let location: Location = settings.storage_url().parse()?;
    require_database(settings, "to copy")?;
    let made = prepare(directory)?;
    let done = write(settings, &location, directory, with_objects).await;
    if done.is_err() {
        // A half-written directory would refuse the next attempt, which needs an empty one.
        remove(directory, made);
    }
    done
}

/// Makes the directory, readable by this user alone; returns whether it was missing.
fn prepare(directory: &Path) -> anyhow::Result<bool> {
    let displayed = directory.display();
    match fs::read_dir(directory) {
        Ok(mut entries) => match entries.next() {
            None => {
                // The dump holds everyone's data.
                if !adopt(directory, OTHERS)
                    .with_context(|| format!("the rights of {displayed}"))?
                {
                    complain(&format!(
                        "warning: other accounts can open {displayed}, which belongs to another one"
                    ));
                }
                Ok(false)
            }
            Some(_) => bail!("{displayed} is not empty: a backup needs a directory of its own"),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let mut builder = DirBuilder::new();
            // The dump holds everyone's data.
            builder.recursive(true).mode(0o700);
            builder
                .create(directory)
                .with_context(|| format!("cannot make the directory {displayed}"))?;
            Ok(true)
        }
        Err(error) => Err(error).with_context(|| format!("cannot read the directory {displayed}")),
    }
}

/// Removes an unfinished backup.
fn remove(directory: &Path, made: bool) {
    if made {
        let _ = fs::remove_dir_all(directory);
        return;
    }
    // A directory that existed before belongs to the operator, and stays.
    // The manifest first: without it the rest is no backup.
    for file in [MANIFEST, DATABASE, OBJECTS] {
        let _ = fs::remove_file(directory.join(file));
    }
    let _ = fs::remove_dir_all(directory.join(objects::DIRECTORY));
}

async fn write(
    settings: &Settings,
    location: &Location,
    directory: &Path,
    with_objects: bool,
) -> anyhow::Result<Summary> {
    let opened = ExistingDatabase::open(settings).await?;
    let done = write_from(&opened, settings, location, directory, with_objects).await;
    opened.close().await?;
    done
}

async fn write_from(
    opened: &ExistingDatabase,
    settings: &Settings,
    location: &Location,
    directory: &Path,
    with_objects: bool,
) -> anyhow::Result<Summary> {
    let state = opened.state().await?;
    // A restore compares the manifest's migration with those that the program knows.
    let Some(migration) = state.migration.filter(|_| state.pending == 0) else {
        bail!(
            "the database is not that of this version of the program: copy it with the program that its servers run"
        );
    };
    let programs = opened.programs().await?;
    // Before the snapshot, so that the copy holds its own entry.
    record_backup(&opened.repositories(), &SystemClock, &SystemIds).await?;
    // Before the snapshot, which then holds everything that was committed until this time.
    let created_at = SystemClock.now();
    let mut snapshot = opened.snapshot().await?;
    // The same snapshot as the dump's, so that the list fits the records exactly.
    let needed = list(&mut snapshot).await?;
    let database = directory.join(DATABASE);
    snapshot.write(&programs, &database).await?;
    // The objects may take long; PostgreSQL need not keep old rows for them.
    snapshot.release().await?;
    let are_objects_included = with_objects || matches!(location, Location::Local(_));
    let source = storage(settings, location).await?;
    let Copied {
        count,
        bytes,
        missing,
    } = copy(&*source, needed, directory, are_objects_included).await?;
    snapshot
        // The lock that protects the objects ends with its connection: had that broken, some may be missing.
        .check()
        .await
        .context("the database restarted meanwhile; make another backup")?;
    let manifest = Manifest {
        format: manifest::FORMAT,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        migration,
        postgresql: state.server_version,
        created_at,
        database: Contents::of(&database).await?,
        objects: Objects {
            list: Contents::of(&directory.join(OBJECTS)).await?,
            are_included: are_objects_included,
            count,
            bytes,
            storage: location.to_string(),
            missing,
        },
    };
    // Last: a directory without a manifest is not a backup.
    manifest.write(directory)?;
    Ok(Summary {
        database_bytes: manifest.database.bytes,
        objects: count,
        object_bytes: bytes,
        are_objects_included,
        storage: manifest.objects.storage,
        missing: manifest.objects.missing,
    })
}
