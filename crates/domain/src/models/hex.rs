//! Hashes as lower-case hexadecimal texts.

use serde::{Deserialize, Deserializer, Serializer, de::Error};

/// Writes a hash as a text.
pub(super) fn encode(hash: &[u8; 32]) -> String {
    base16ct::lower::encode_string(hash)
}

pub(super) fn serialize<S: Serializer>(hash: &[u8; 32], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&encode(hash))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<[u8; 32], D::Error> {
    let text = String::deserialize(deserializer)?;
    let hash = base16ct::mixed::decode_vec(&text).ok();
    hash.and_then(|bytes| bytes.try_into().ok())
        .ok_or_else(|| D::Error::custom("a SHA-256 has 64 hexadecimal digits"))
}
