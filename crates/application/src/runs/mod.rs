//! Platform runs: queue, logs, runner.

pub mod begin_run;
pub mod end_run;
pub mod read_log;
pub mod run_job;
pub mod sweep_runs;
