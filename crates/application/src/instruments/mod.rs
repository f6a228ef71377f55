//! Instruments.

pub mod create_instrument;
pub mod delete_instrument;
pub mod find_instrument;
pub mod get_device_status;
pub mod get_instrument;
pub mod images;
pub mod list_instruments;
pub mod list_readers;
pub mod preview_reading;
mod reader_job;
pub mod record_heartbeat;
pub mod request_reading;
pub mod update_instrument;
pub mod watch_devices;
