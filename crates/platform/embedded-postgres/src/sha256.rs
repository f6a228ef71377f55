//! SHA-256 in hexadecimal digits.

use sha2::{Digest, Sha256};

/// The SHA-256 of the bytes, in lower case.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    base16ct::lower::encode_string(&Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    #[test]
    fn matches_the_published_value_of_nothing() {
        let expected = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(super::sha256_hex(b""), expected);
    }
}
