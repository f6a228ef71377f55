//! Files: uploads, lists, content.

pub mod begin_upload;
pub mod confirm_upload;
pub mod delete_file;
pub mod get_file;
pub mod get_file_content;
pub mod get_storage_usage;
pub mod list_files;
pub mod ongoing_uploads;
pub mod open_download;
pub mod preview_table;
pub mod quota;
pub(crate) mod read_file;
pub mod receive_upload;
pub mod sweep_uploads;
pub mod upload_file;
pub mod upload_room;
