//! The event log.

use crate::Operation;

pub mod follow;

pub(crate) fn operations() -> Vec<Operation> {
    vec![follow::operation()]
}
