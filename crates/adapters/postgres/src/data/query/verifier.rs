//! Verifiers of passwords, as PostgreSQL stores them.

use base64::{Engine, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// Returns the SCRAM-SHA-256 verifier of a random password, with that number of iterations, at least 1.
///
/// More of them slow down the guessing of a password that a person chose, but also each login: PostgreSQL's
/// 4,096 by more than a millisecond.
pub(crate) fn scram_sha_256(password: &str, salt: &[u8], iterations: u32) -> String {
    let salted = pbkdf2(password.as_bytes(), salt, iterations);
    let stored = Sha256::digest(keyed_hash(&salted, &[b"Client Key"]));
    let server = keyed_hash(&salted, &[b"Server Key"]);
    format!(
        "SCRAM-SHA-256${iterations}:{}${}:{}",
        STANDARD.encode(salt),
        STANDARD.encode(stored),
        STANDARD.encode(server)
    )
}

/// The first block of PBKDF2, which is as long as the hash.
fn pbkdf2(password: &[u8], salt: &[u8], iterations: u32) -> [u8; 32] {
    let mut last = keyed_hash(password, &[salt, &[0, 0, 0, 1]]);
    let mut salted = last;
    for _ in 1..iterations {
        last = keyed_hash(password, &[&last]);
        for (byte, next) in salted.iter_mut().zip(last) {
            *byte ^= next;
        }
    }
    salted
}

/// Returns the HMAC-SHA-256 of the parts, one after the other.
pub(crate) fn keyed_hash(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    // HMAC takes keys of every length.
    Hmac::<Sha256>::new_from_slice(key).map_or([0; 32], |mut mac| {
        for part in parts {
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    })
}
