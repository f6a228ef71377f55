//! Rules that hold for every endpoint.

mod abuse;
mod framework;
mod headers;
mod hostile;
mod idempotency;
mod starvation;
mod waiting;
