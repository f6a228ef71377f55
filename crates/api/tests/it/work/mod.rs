//! Platform runs: queue, logs, runner.

mod backfills;
mod followed_logs;
mod job_runs;
mod nonces;
#[cfg(target_os = "linux")]
mod on_ray;
#[cfg(target_os = "linux")]
mod on_ray_attacks;
#[cfg(target_os = "linux")]
mod partition;
#[cfg(target_os = "linux")]
pub(crate) mod platform_runs;
mod run_lab;
mod shared_backend;
#[cfg(target_os = "linux")]
mod timeouts;
