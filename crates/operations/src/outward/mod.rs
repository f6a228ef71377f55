//! What other programs reach from outside, or are told: webhooks.

use crate::Operation;

pub mod webhooks;

pub(crate) fn operations() -> Vec<Operation> {
    webhooks::operations()
}
