//! CRC-32C checksums of files.

use std::fmt;

use base64::{Engine, engine::general_purpose::STANDARD};

/// A CRC-32C (Castagnoli). The API shows it as base64 of its four big-endian bytes, as Google
/// Cloud Storage does.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Crc32c(u32);

impl Crc32c {
    /// Wraps a checksum.
    #[must_use]
    pub const fn new(checksum: u32) -> Self {
        Self(checksum)
    }

    /// Returns the checksum as a number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Encodes the checksum as the API shows it.
    #[must_use]
    pub fn to_base64(self) -> String {
        // S3 writes checksums as base64 of their big-endian bytes.
        STANDARD.encode(self.0.to_be_bytes())
    }

    /// Decodes a text written by [`Crc32c::to_base64`]; `None` for any other text.
    #[must_use]
    pub fn from_base64(text: &str) -> Option<Self> {
        let bytes: [u8; 4] = STANDARD.decode(text).ok()?.try_into().ok()?;
        Some(Self(u32::from_be_bytes(bytes)))
    }
}

impl fmt::Debug for Crc32c {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Crc32c({:08x})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_shown_as_base64_of_big_endian_bytes() {
        let check = Crc32c::new(0xe306_9283);
        assert_eq!(check.to_base64(), "4waSgw==");
        assert_eq!(Crc32c::from_base64("4waSgw=="), Some(check));
        for garbage in ["", "4waSgw", "4waSgwA=", "é"] {
            assert_eq!(Crc32c::from_base64(garbage), None, "{garbage}");
        }
    }

    #[test]
    fn it_is_a_number_of_32_bits_shown_in_hexadecimal_for_debugging() {
        let check = Crc32c::new(0x00c0_ffee);
        assert_eq!(check.get(), 0x00c0_ffee);
        assert_eq!(format!("{check:?}"), "Crc32c(00c0ffee)");
    }
}
