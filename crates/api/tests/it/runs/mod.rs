//! Platform runs: queue, logs, runner.

mod followed_logs;
mod job_runs;
#[cfg(target_os = "linux")]
mod on_ray;
#[cfg(target_os = "linux")]
mod platform_runs;
mod run_lab;
#[cfg(target_os = "linux")]
mod timeouts;
