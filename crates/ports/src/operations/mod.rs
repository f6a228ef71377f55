//! Operation of the platform: health, figures, periodic tasks.

mod health;
mod periodic;

pub use health::{ConnectionCounts, StoreFigures, StoreHealth};
pub use periodic::{PassClaim, PassResult, PeriodicTaskStore};
