//! Uploads in one request, and what signed URLs lead to.

pub mod storage;
pub mod upload;
pub mod upload_form;
