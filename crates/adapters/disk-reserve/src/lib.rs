//! Reserve of disk space beside the embedded PostgreSQL: the port over the file that takes the space.
//!
//! **Invariants.** No rule of when the reserve is given up: that is a use case's.

use std::{
    io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use async_trait::async_trait;
use labdata_domain::storage::ReserveState;
use labdata_embedded_postgres::DiskReserve as ReserveFile;
use labdata_ports::{PortError, maintenance::DiskReserve};

/// The reserve of this machine. There is none to keep where the database is elsewhere.
#[derive(Debug)]
pub struct LocalDiskReserve(Option<Arc<Reserve>>);

#[derive(Debug)]
struct Reserve {
    file: ReserveFile,
    /// False before the file's space is free, so that no upload counts that space as free.
    is_held: AtomicBool,
    /// Held while the file is looked at or changed.
    turn: Mutex<()>,
}

impl Reserve {
    fn state(&self) -> io::Result<ReserveState> {
        let found = self.file.state()?;
        // Another process may have changed it.
        self.is_held.store(found.held, Ordering::SeqCst);
        Ok(ReserveState {
            size: found.size,
            held: found.held,
            available: found.available,
        })
    }

    fn give_up(&self) -> io::Result<bool> {
        // First: while the file shrinks, no upload may count the space that it frees.
        self.is_held.store(false, Ordering::SeqCst);
        self.file.give_up()
    }

    fn hold(&self) -> io::Result<()> {
        self.file.hold()?;
        // Last: until the file has its space, uploads are refused.
        self.is_held.store(true, Ordering::SeqCst);
        Ok(())
    }
}

impl LocalDiskReserve {
    /// No reserve.
    #[must_use]
    pub const fn none() -> Self {
        Self(None)
    }

    /// Takes the reserve, if there is room for it.
    pub async fn open(file: ReserveFile) -> Self {
        let reserve = Self(Some(Arc::new(Reserve {
            file,
            is_held: AtomicBool::new(false),
            turn: Mutex::new(()),
        })));
        // A server without a reserve still works, so the start does not fail.
        if let Err(error) = reserve.hold().await {
            tracing::error!(%error, "there is no room for a reserve on the disk of the database");
        }
        reserve
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Reserve) -> io::Result<T> + Send + 'static,
    ) -> Result<Option<T>, PortError> {
        let Some(reserve) = self.0.clone() else {
            return Ok(None);
        };
        let done = tokio::task::spawn_blocking(move || {
            // Giving up and taking at once could leave the file and `is_held` contradicting each other.
            let _turn = reserve.turn.lock().unwrap_or_else(PoisonError::into_inner);
            work(&reserve)
        });
        let done = done.await;
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
        let reserve = self.0.as_ref();
        // Where the database is elsewhere, no reserve can be missing.
        reserve.is_none_or(|reserve| reserve.is_held.load(Ordering::SeqCst))
    }

    async fn state(&self) -> Result<Option<ReserveState>, PortError> {
        self.blocking(Reserve::state).await
    }

    async fn give_up(&self) -> Result<bool, PortError> {
        Ok(self.blocking(Reserve::give_up).await?.unwrap_or(false))
    }

    async fn hold(&self) -> Result<(), PortError> {
        self.blocking(Reserve::hold).await?;
        Ok(())
    }
}
