//! Jobs, their scripts and parameters.

pub mod check_script;
pub mod create_job;
pub mod get_job;
pub mod list_jobs;
pub mod update_job;
