//! The platform's use cases, one file each: the only callers of the ports.
//!
//! **Invariants.** A use case is a plain function: `async fn verb(ports: &Ports, actor: &Actor,
//! command: Verb) -> Result<Thing, Error>`. It authorizes the actor before anything else. It
//! depends on ports, never on an adapter, and knows nothing of HTTP.

pub mod authenticate;
pub mod begin_run;
pub mod begin_upload;
pub mod cancel_execution;
mod check_script;
pub mod close_execution;
pub mod confirm_upload;
pub mod create_api_key;
pub mod create_instrument;
pub mod create_job;
pub mod define_table;
pub mod delete_file;
pub mod drop_table;
pub mod end_run;
pub mod error;
pub mod fire_triggers;
pub mod first_start;
pub mod get_execution;
pub mod get_file_content;
pub mod get_job;
pub mod get_schema;
pub mod index_files;
pub mod key_cache;
pub mod list_api_keys;
pub mod list_executions;
pub mod list_files;
pub mod list_instruments;
pub mod list_jobs;
pub mod list_notifications;
pub mod mark_notification;
pub mod notification_preferences;
pub mod notify_failure;
pub mod open_download;
pub mod operator_keys;
pub mod ports;
pub mod query_data;
pub mod read_log;
pub mod read_rows;
pub mod read_series;
pub mod receive_upload;
pub mod revert_execution;
pub mod revoke_api_key;
pub mod run_job;
pub mod send_emails;
pub mod send_notification;
pub mod start_execution;
pub mod sweep_answers;
pub mod sweep_executions;
pub mod sweep_runs;
pub mod sweep_uploads;
pub mod update_job;
pub mod upload_file;
pub mod write_data;

pub use error::Error;
pub use ports::Ports;
