//! Rules that hold for every endpoint.

mod framework;
mod hostile;
mod idempotency;
