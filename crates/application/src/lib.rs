//! The platform's use cases, one file each: the only callers of the ports.
//!
//! **Invariants.** A use case is a plain function: `async fn verb(ports: &Ports, actor: &Actor,
//! command: Verb) -> Result<Thing, Error>`. It authorizes the actor before anything else. It
//! depends on ports, never on an adapter, and knows nothing of HTTP.

pub mod error;
pub mod ports;

pub use error::Error;
pub use ports::Ports;
