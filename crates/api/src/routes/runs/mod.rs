//! Platform runs: queue, logs, runner.

pub mod logs;
pub mod run_job;
