//! The audit log.

pub mod list_audit;
pub(crate) mod record;
pub mod record_backup;
pub mod stream_audit;
pub mod verify_audit;
