//! Platform runs: queue, logs, runner.

pub mod key;
pub mod logs;
