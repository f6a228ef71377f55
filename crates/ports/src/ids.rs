//! Identifiers and random bytes.

use uuid::Uuid;

/// Makes identifiers and secrets.
pub trait IdSource: Send + Sync {
    /// A new UUID v7. Implementations MUST return ids that increase within one process, so that
    /// rows keep the order in which they were written.
    fn next_id(&self) -> Uuid;

    /// Fills the buffer with bytes from a cryptographically secure source.
    fn fill_random(&self, buffer: &mut [u8]);
}
