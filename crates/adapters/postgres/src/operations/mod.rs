//! Operation of the platform: health, figures, periodic tasks.

mod health;
mod periodic;

pub use health::PgStoreHealth;
pub use periodic::PgPeriodicTaskStore;
