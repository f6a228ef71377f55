//! Work on the platform, runs and trainings alike: queue, logs, runner.

pub mod backfill;
pub mod begin_run;
pub mod begin_work;
pub mod check_backend;
pub mod claim_work;
mod context;
pub mod copy_log;
pub mod end_work;
pub mod interpret_end;
mod interpretation;
pub mod read_log;
pub mod redeem_nonce;
pub mod renew_lease;
pub mod run_job;
mod run_key;
pub mod sweep_logs;
pub mod sweep_work;

pub use context::WorkContext;
pub use interpretation::Interpretation;
