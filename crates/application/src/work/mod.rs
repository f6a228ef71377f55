//! Platform runs: queue, logs, runner.

pub mod begin_run;
pub mod check_backend;
pub mod claim_runs;
pub mod copy_log;
pub mod end_run;
pub mod observe_run;
pub mod read_log;
pub mod reap_run;
pub mod redeem_nonce;
pub mod renew_lease;
pub mod run_job;
mod run_key;
pub mod stop_run;
pub mod submit_run;
pub mod sweep_runs;
pub mod trim_caches;
pub mod watch_runs;
