//! Stored artifacts of trainings.

use super::hex;
use crate::files::ObjectKey;

/// Trained predictor, as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// Its object.
    pub object: ObjectKey,
    /// SHA-256 of its bytes.
    pub sha256: [u8; 32],
    /// Its size in bytes.
    pub size: u64,
}

impl Artifact {
    /// Returns the hash as a lower-case hexadecimal text.
    #[must_use]
    pub fn sha256_hex(&self) -> String {
        hex::encode(&self.sha256)
    }
}
