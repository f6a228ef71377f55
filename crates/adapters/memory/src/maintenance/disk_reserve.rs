//! A disk reserve whose disk is imagined.

use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use labdata_domain::storage::ReserveState;
use labdata_ports::{PortError, maintenance::DiskReserve};

/// Disk reserve of a disk that a test fills and empties. By default there is none to keep.
#[derive(Debug, Default)]
pub struct InMemoryDiskReserve {
    state: Mutex<Option<ReserveState>>,
}

impl InMemoryDiskReserve {
    /// A reserve in that state.
    #[must_use]
    pub fn new(state: ReserveState) -> Self {
        Self {
            state: Mutex::new(Some(state)),
        }
    }

    /// Sets the free bytes of the disk.
    pub fn set_available(&self, available: u64) {
        if let Some(state) = &mut *self.lock() {
            state.available = available;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<ReserveState>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl DiskReserve for InMemoryDiskReserve {
    fn is_held(&self) -> bool {
        self.lock().is_none_or(|state| state.held)
    }

    async fn state(&self) -> Result<Option<ReserveState>, PortError> {
        Ok(*self.lock())
    }

    async fn give_up(&self) -> Result<bool, PortError> {
        Ok(match &mut *self.lock() {
            Some(state) if state.held => {
                state.held = false;
                state.available = state.available.saturating_add(state.size);
                true
            }
            _ => false,
        })
    }

    async fn hold(&self) -> Result<(), PortError> {
        if let Some(state) = &mut *self.lock()
            && !state.held
        {
            let rest = state.available.checked_sub(state.size);
            state.available =
                rest.ok_or_else(|| PortError::DiskFull("the imagined disk".to_owned()))?;
            state.held = true;
        }
        Ok(())
    }
}
