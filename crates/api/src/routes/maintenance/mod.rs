//! Health, metrics and documents for operators.

pub mod console;
pub mod dependencies;
pub mod docs;
pub mod health;
pub mod metrics;
pub mod openapi;
pub mod ready;
