//! Uploads in one request, what signed URLs lead to, and the tables of files.

pub mod preview_table;
pub mod storage;
pub mod upload;
pub mod upload_form;
