//! Manifest of a backup.

use std::{
    fs::File,
    io::{Read, Write},
    path::Path,
};

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use time::OffsetDateTime;
use tokio::task::spawn_blocking;

/// Name of the copy of the database.
pub(super) const DATABASE: &str = "database.dump";

/// Name of the list of objects.
pub(super) const OBJECTS: &str = "objects.jsonl";

/// Name of the manifest.
pub(super) const MANIFEST: &str = "manifest.json";

/// Version of the layout of backups.
pub(super) const FORMAT: u32 = 1;

/// Number of bytes that are hashed at a time.
const PIECE: usize = 1 << 20;

/// A backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    /// Version of this layout.
    pub(super) format: u32,
    /// Version of the program that made it.
    pub(super) program: String,
    /// The last migration of its database.
    pub(super) migration: String,
    /// Version of the server that it was made from.
    pub(super) postgresql: String,
    /// When it was begun: it holds all that was acknowledged before.
    #[serde(with = "time::serde::rfc3339")]
    pub(super) created_at: OffsetDateTime,
    /// [`DATABASE`].
    pub(super) database: Contents,
    /// The objects.
    pub(super) objects: Objects,
}

/// Fields that every version of the layout has.
#[derive(Deserialize)]
struct Format {
    format: u32,
}

/// The objects of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Objects {
    /// [`OBJECTS`].
    pub(super) list: Contents,
    /// False if they are listed only.
    pub(super) are_included: bool,
    /// Number of objects.
    pub(super) count: u64,
    /// Size of all of them in bytes.
    pub(super) bytes: u64,
    /// The storage in which they were.
    pub(super) storage: String,
    /// Objects that the storage did not have.
    pub(super) missing: Vec<String>,
}

/// Size and hash of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Contents {
    /// Size in bytes.
    pub(super) bytes: u64,
    /// SHA-256, in hexadecimal digits.
    pub(super) sha256: String,
}

impl Contents {
    /// Reads a file through.
    pub(super) async fn of(path: &Path) -> anyhow::Result<Self> {
        let path = path.to_owned();
        spawn_blocking(move || {
            Self::hashed(&path).with_context(|| format!("cannot read {}", path.display()))
        })
        .await?
    }

    fn hashed(path: &Path) -> std::io::Result<Self> {
        let mut file = File::open(path)?;
        let (mut hash, mut bytes, mut chunk) = (Sha256::new(), 0, vec![0; PIECE]);
        loop {
            let read = file.read(&mut chunk)?;
            let Some(read) = chunk.get(..read).filter(|read| !read.is_empty()) else {
                break;
            };
            hash.update(read);
            bytes += u64::try_from(read.len()).unwrap_or(u64::MAX);
        }
        let sha256 = base16ct::lower::encode_string(&hash.finalize());
        Ok(Self { bytes, sha256 })
    }

    /// Makes sure that a file is what it was.
    pub(super) async fn check(&self, path: &Path) -> anyhow::Result<()> {
        let found = Self::of(path).await?;
        if found != *self {
            bail!(
                "{} is not what the backup wrote: {} bytes instead of {}, or others",
                path.display(),
                found.bytes,
                self.bytes
            );
        }
        Ok(())
    }
}

impl Manifest {
    /// Writes it in one step: a directory that has it is a whole backup.
    pub(super) fn write(&self, directory: &Path) -> anyhow::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        serde_json::to_writer_pretty(&mut file, self)?;
        file.write_all(b"\n")?;
        // The content before the name: after a crash the manifest is whole or absent.
        file.as_file().sync_all()?;
        file.persist(directory.join(MANIFEST))?;
        // The rename is durable only with its directory.
        File::open(directory)?.sync_all()?;
        Ok(())
    }

    /// Reads that of a directory.
    pub(super) fn read(directory: &Path) -> anyhow::Result<Self> {
        let path = directory.join(MANIFEST);
        let displayed = path.display();
        let bytes = std::fs::read(&path)
            .with_context(|| format!("{} is no whole backup: {displayed}", directory.display()))?;
        let Format { format } =
            serde_json::from_slice(&bytes).with_context(|| format!("{displayed} is broken"))?;
        // Read apart from the rest, which another format may not have at all.
        if format != FORMAT {
            bail!(
                "{displayed} has the format {format}, and this program reads {FORMAT}: use the program that made it"
            );
        }
        serde_json::from_slice(&bytes).with_context(|| format!("{displayed} is broken"))
    }
}
