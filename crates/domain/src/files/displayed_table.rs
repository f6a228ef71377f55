//! Limits of the tables of files that are displayed.

use crate::refusal::{ErrorCode, Refuse};

/// Maximum size of a file whose table is displayed, in bytes.
pub const MAX_DISPLAYED_TABLE_BYTES: u64 = 100 << 20;

/// Maximum number of rows of a file whose table is displayed.
pub const MAX_DISPLAYED_TABLE_ROWS: usize = 1_000_000;

/// The file is larger than [`MAX_DISPLAYED_TABLE_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the file is larger than {} MiB; make a dataset of it", MAX_DISPLAYED_TABLE_BYTES >> 20)]
pub struct DisplayedTableTooLarge;

impl Refuse for DisplayedTableTooLarge {
    fn code(&self) -> ErrorCode {
        ErrorCode::FileTooLarge
    }
}
