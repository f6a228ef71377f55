//! Hashes as lower-case hexadecimal texts.

use std::fmt::Write;

use serde::{Deserialize, Deserializer, Serializer, de::Error};

/// Writes a hash as a text.
pub(super) fn encode(hash: &[u8; 32]) -> String {
    hash.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

pub(super) fn serialize<S: Serializer>(hash: &[u8; 32], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&encode(hash))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<[u8; 32], D::Error> {
    let text = String::deserialize(deserializer)?;
    let byte = |pair: &[u8]| {
        let pair = str::from_utf8(pair).ok()?;
        let is_hex = pair.bytes().all(|digit| digit.is_ascii_hexdigit());
        u8::from_str_radix(pair, 16).ok().filter(|_| is_hex)
    };
    let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(byte).collect();
    let hash = bytes
        .filter(|_| text.len() == 64)
        .and_then(|bytes| bytes.try_into().ok());
    hash.ok_or_else(|| D::Error::custom("a SHA-256 has 64 hexadecimal digits"))
}
