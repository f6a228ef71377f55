//! Health, metrics and the document of the API.

use crate::Operation;

pub mod dependencies;
pub mod health;
pub mod metrics;
pub mod openapi;
pub mod ready;

pub(crate) fn operations() -> Vec<Operation> {
    vec![
        dependencies::operation(),
        health::operation(),
        ready::operation(),
        metrics::operation(),
        openapi::operation(),
    ]
}
