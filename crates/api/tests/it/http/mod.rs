//! Rules that hold for every endpoint.

mod framework;
mod headers;
mod hostile;
mod idempotency;
mod starvation;
