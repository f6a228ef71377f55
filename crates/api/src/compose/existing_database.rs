//! The configured database as it is, for backups.

use std::path::{Path, PathBuf};

use labdata_embedded_postgres::{EmbeddedPostgres, client_programs};
use labdata_ports::Repositories;
use labdata_postgres::{Database, DatabaseState, PgStore, Snapshot, inspect, server_major};
use tokio::task::spawn_blocking;

use super::reach;
use crate::settings::Settings;

pub(crate) use labdata_postgres::{NeededObject, Snapshot as DatabaseSnapshot, knows_migration};

/// The configured database, to which no migration is applied.
pub(crate) struct ExistingDatabase {
    embedded: Option<EmbeddedPostgres>,
    database: Database,
    url: String,
    bin_dir: Option<PathBuf>,
    cache: PathBuf,
}

impl ExistingDatabase {
    /// Starts the embedded PostgreSQL unless a database is set.
    ///
    /// # Errors
    /// When the database cannot be started or reached.
    pub(crate) async fn open(settings: &Settings) -> anyhow::Result<Self> {
        let (embedded, database, url) = reach(settings).await?;
        Ok(Self {
            embedded,
            database,
            url,
            bin_dir: settings.pg_bin_dir.clone(),
            cache: settings.data_dir.join("cache"),
        })
    }

    /// Returns the repositories.
    pub(crate) fn repositories(&self) -> Repositories {
        PgStore::new(self.database.clone(), self.database.clone()).repositories()
    }

    /// Returns version and migrations.
    pub(crate) async fn state(&self) -> anyhow::Result<DatabaseState> {
        Ok(inspect(&self.database).await?)
    }

    /// Returns true if the database has no tables of a platform.
    pub(crate) async fn is_empty(&self) -> anyhow::Result<bool> {
        Ok(labdata_postgres::is_empty(&self.database).await?)
    }

    /// Returns the directory of PostgreSQL's programs for this server.
    pub(crate) async fn programs(&self) -> anyhow::Result<PathBuf> {
        let major = server_major(&self.database).await?;
        let (named, cache) = (self.bin_dir.clone(), self.cache.clone());
        // It runs programs to learn their versions, and may download others, which blocks.
        let found = spawn_blocking(move || client_programs(named.as_deref(), &cache, major));
        Ok(found.await??)
    }

    /// Takes a snapshot, which other connections may go on changing the database beside.
    pub(crate) async fn snapshot(&self) -> anyhow::Result<Snapshot> {
        Ok(Snapshot::take(&self.database, &self.url).await?)
    }

    /// Restores the copy in that file.
    pub(crate) async fn restore(&self, programs: &Path, dump: &Path) -> anyhow::Result<()> {
        labdata_postgres::restore(&self.database, &self.url, programs, dump).await?;
        Ok(())
    }

    /// Stops the embedded PostgreSQL, if any.
    pub(crate) async fn close(self) -> anyhow::Result<()> {
        drop(self.database);
        if let Some(embedded) = self.embedded {
            embedded.stop().await?;
        }
        Ok(())
    }
}
