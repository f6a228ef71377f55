//! Limits of every request.

/// JSON bodies of this many bytes, or more, are refused (specification, "Limits": 4.5 MB).
pub const BODY_LIMIT: usize = 4_718_592;

/// The same for an operation that asks for no key: strangers cannot make the server buffer much.
pub const OPEN_BODY_LIMIT: usize = 16_384;

/// Maximum length of an idempotency key.
pub const MAX_KEY_LENGTH: usize = 255;
