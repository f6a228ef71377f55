//! Operation of the platform: health, figures, dependencies, periodic tasks, the reserve of disk space.

mod dependencies;
mod disk_reserve;
mod health;
mod periodic;

pub use dependencies::{Dependency, DependencyChecks, DependencyState};
pub use disk_reserve::DiskReserve;
pub use health::{ConnectionCounts, StoreFigures, StoreHealth};
pub use periodic::{PassClaim, PassResult, PeriodicTaskStore};
