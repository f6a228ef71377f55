//! Operation of the platform: health, figures, periodic tasks.

pub(crate) mod backup;
mod health;
mod periodic;

pub use health::PgStoreHealth;
pub use periodic::PgPeriodicTaskStore;
