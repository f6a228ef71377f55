//! Reserve of space on the disk of the store.

use async_trait::async_trait;
use labdata_domain::storage::ReserveState;

use crate::PortError;

/// Space on the disk of the store that is stored for emergencies. All servers of a data directory share
/// one.
#[async_trait]
pub trait DiskReserve: Send + Sync {
    /// Returns true if the reserve was in place, or there was none to keep, when this process last
    /// looked. MUST NOT block.
    fn is_held(&self) -> bool;

    /// Measures the disk. `None` if no reserve can be retained: the store is on another machine.
    async fn state(&self) -> Result<Option<ReserveState>, PortError>;

    /// Makes its space free. Returns false if it was free. [`Self::is_held`] MUST be false before the
    /// space is.
    async fn give_up(&self) -> Result<bool, PortError>;

    /// Takes its space. MUST leave nothing where there is too little.
    ///
    /// # Errors
    /// [`PortError::DiskFull`].
    async fn hold(&self) -> Result<(), PortError>;
}
