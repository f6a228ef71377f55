//! Platform runs: queue, logs, runner.

mod job_runs;
#[cfg(target_os = "linux")]
mod on_ray;
#[cfg(target_os = "linux")]
mod platform_runs;
#[cfg(target_os = "linux")]
mod timeouts;
