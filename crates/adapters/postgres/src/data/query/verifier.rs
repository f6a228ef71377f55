//! Verifiers of passwords, as PostgreSQL stores them.

use base64::{Engine, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// Returns the SCRAM-SHA-256 verifier of a random password.
///
/// It has one iteration. More of them slow down the guessing of a password that a person chose, but also
/// each login: PostgreSQL's 4,096 by more than a millisecond.
pub(super) fn scram_sha_256(password: &str, salt: &[u8]) -> String {
    // The first and only iteration of PBKDF2.
    let salted = keyed_hash(password.as_bytes(), &[salt, &[0, 0, 0, 1]]);
    let stored = Sha256::digest(keyed_hash(&salted, &[b"Client Key"]));
    let server = keyed_hash(&salted, &[b"Server Key"]);
    format!(
        "SCRAM-SHA-256$1:{}${}:{}",
        STANDARD.encode(salt),
        STANDARD.encode(stored),
        STANDARD.encode(server)
    )
}

/// Returns the HMAC-SHA-256 of the parts, one after the other.
pub(super) fn keyed_hash(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    // HMAC takes keys of every length.
    Hmac::<Sha256>::new_from_slice(key).map_or([0; 32], |mut mac| {
        for part in parts {
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    })
}
