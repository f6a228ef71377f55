//! Reserve of disk space beside the embedded PostgreSQL.

use std::{
    io,
    sync::atomic::{AtomicBool, Ordering},
};

use async_trait::async_trait;
use labdata_domain::storage::ReserveState;
use labdata_embedded_postgres::DiskReserve as ReserveFile;
use labdata_ports::{PortError, operations::DiskReserve};

/// The reserve of this machine. There is none to keep where the database is elsewhere.
#[derive(Debug)]
pub(super) struct LocalDiskReserve {
    file: Option<ReserveFile>,
    is_held: AtomicBool,
}

impl LocalDiskReserve {
    /// No reserve.
    pub(super) const fn none() -> Self {
        Self {
            file: None,
            is_held: AtomicBool::new(true),
        }
    }

    /// Takes the reserve, if there is room for it.
    pub(super) async fn open(file: ReserveFile) -> Self {
        let reserve = Self {
            file: Some(file),
            is_held: AtomicBool::new(false),
        };
        if let Err(error) = reserve.hold().await {
            tracing::error!(%error, "there is no room for a reserve on the disk of the database");
        }
        reserve
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&ReserveFile) -> io::Result<T> + Send + 'static,
    ) -> Result<Option<T>, PortError> {
        let Some(file) = self.file.clone() else {
            return Ok(None);
        };
        let done = tokio::task::spawn_blocking(move || work(&file)).await;
        match done.map_err(|error| PortError::Internal(error.to_string()))? {
            Ok(done) => Ok(Some(done)),
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                Err(PortError::DiskFull(error.to_string()))
            }
            Err(error) => Err(PortError::Unavailable(format!("the disk reserve: {error}"))),
        }
    }
}

#[async_trait]
impl DiskReserve for LocalDiskReserve {
    fn is_held(&self) -> bool {
        self.is_held.load(Ordering::Relaxed)
    }

    async fn state(&self) -> Result<Option<ReserveState>, PortError> {
        let found = self.blocking(ReserveFile::state).await?;
        Ok(found.map(|found| {
            // Another process may have changed it.
            self.is_held.store(found.held, Ordering::Relaxed);
            ReserveState {
                size: found.size,
                held: found.held,
                available: found.available,
            }
        }))
    }

    async fn give_up(&self) -> Result<bool, PortError> {
        let given_up = self.blocking(ReserveFile::give_up).await?;
        self.is_held.store(given_up.is_none(), Ordering::Relaxed);
        Ok(given_up.unwrap_or(false))
    }

    async fn hold(&self) -> Result<(), PortError> {
        self.blocking(ReserveFile::hold).await?;
        self.is_held.store(true, Ordering::Relaxed);
        Ok(())
    }
}
