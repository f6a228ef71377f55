//! Operation of the platform: health, figures, periodic tasks, the reserve of disk space.

mod disk_reserve;
mod health;
mod periodic;

pub use disk_reserve::DiskReserve;
pub use health::{ConnectionCounts, StoreFigures, StoreHealth};
pub use periodic::{PassClaim, PassResult, PeriodicTaskStore};
