//! Refusals of uploads and reads of files.

use super::MAX_FILE_BYTES;

use crate::refusal::{ErrorCode, RefusalKind, Refuse};

/// Why a file is not accepted, or cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileRefusal {
    /// No bytes are stored for the file.
    #[error("the file's bytes were not uploaded yet: PUT them to the upload URL first")]
    NotUploaded,
    /// The upload is not confirmed, so the file cannot be read or used.
    #[error("the upload of this file is not confirmed yet")]
    NotConfirmed,
    /// A request body exceeds a limit in bytes.
    #[error("a file has at most {0} bytes")]
    BodyTooLarge(u64),
    /// Uploaded bytes exceed the limit; the file was deleted.
    #[error("a file has at most {MAX_FILE_BYTES} bytes; it was discarded")]
    Oversized,
    /// The bytes are a native executable of that format.
    #[error("native executables ({0}) are not accepted")]
    NativeExecutable(&'static str),
    /// The execution of the upload has ended.
    #[error("this job execution is closed and accepts no more files")]
    ExecutionClosed,
    /// Another confirmation of the path came first.
    #[error("another upload of this path came first; request a fresh upload URL")]
    Superseded,
}

impl Refuse for FileRefusal {
    fn code(&self) -> ErrorCode {
        match self {
            Self::NotUploaded => ErrorCode::FileNotUploaded,
            Self::NotConfirmed => ErrorCode::FileNotConfirmed,
            Self::BodyTooLarge(_) | Self::Oversized => ErrorCode::FileTooLarge,
            Self::NativeExecutable(_) => ErrorCode::NativeExecutable,
            Self::ExecutionClosed => ErrorCode::ExecutionClosed,
            Self::Superseded => ErrorCode::UploadSuperseded,
        }
    }

    fn kind(&self) -> RefusalKind {
        match self {
            Self::BodyTooLarge(_) => RefusalKind::TooLarge,
            _ => RefusalKind::Invalid,
        }
    }
}

impl FileRefusal {
    /// Checks the size of uploaded bytes.
    ///
    /// # Errors
    /// [`FileRefusal::Oversized`].
    pub const fn check_size(bytes: u64) -> Result<(), Self> {
        if bytes > MAX_FILE_BYTES {
            Err(Self::Oversized)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_may_have_the_largest_size_and_no_more() {
        assert_eq!(FileRefusal::check_size(MAX_FILE_BYTES), Ok(()));
        assert_eq!(
            FileRefusal::check_size(MAX_FILE_BYTES + 1),
            Err(FileRefusal::Oversized)
        );
        assert_eq!(
            FileRefusal::Oversized.to_string(),
            "a file has at most 524288000 bytes; it was discarded"
        );
    }
}
