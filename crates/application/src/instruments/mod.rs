//! Instruments.

pub mod create_instrument;
pub mod list_instruments;
