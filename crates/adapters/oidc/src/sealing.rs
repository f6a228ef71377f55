//! Refresh tokens that only this adapter reads: AES-256-GCM under a secret of the platform.

use ring::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    rand::{SecureRandom, SystemRandom},
};

/// Seals tokens.
pub(crate) struct Sealing {
    key: LessSafeKey,
    random: SystemRandom,
}

impl Sealing {
    /// Sealing under that secret; `None` never, for a secret of 32 bytes.
    pub(crate) fn new(secret: &[u8; 32]) -> Option<Self> {
        let key = UnboundKey::new(&AES_256_GCM, secret).ok()?;
        Some(Self {
            key: LessSafeKey::new(key),
            random: SystemRandom::new(),
        })
    }

    /// Seals a token of a person: nonce, then ciphertext.
    pub(crate) fn seal(&self, token: &str, subject: &str) -> Option<Vec<u8>> {
        let mut nonce = [0; NONCE_LEN];
        // Random: a key seals far fewer tokens than would make two alike.
        self.random.fill(&mut nonce).ok()?;
        let mut bytes = token.as_bytes().to_vec();
        let aad = Aad::from(subject.as_bytes());
        let unique = Nonce::assume_unique_for_key(nonce);
        self.key
            .seal_in_place_append_tag(unique, aad, &mut bytes)
            .ok()?;
        Some([&nonce[..], &bytes].concat())
    }

    /// Opens a token of that person.
    pub(crate) fn open(&self, sealed: &[u8], subject: &str) -> Option<String> {
        let (nonce, bytes) = sealed.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut bytes = bytes.to_vec();
        let aad = Aad::from(subject.as_bytes());
        let opened = self.key.open_in_place(nonce, aad, &mut bytes).ok()?;
        String::from_utf8(opened.to_vec()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_opens_for_its_person_alone() {
        let sealing = Sealing::new(&[7; 32]).unwrap();
        let sealed = sealing.seal("refresh-token", "ada").unwrap();
        assert_eq!(
            sealing.open(&sealed, "ada").as_deref(),
            Some("refresh-token")
        );
        assert_eq!(sealing.open(&sealed, "eve"), None);
        assert_eq!(Sealing::new(&[8; 32]).unwrap().open(&sealed, "ada"), None);
        assert!(!sealed.windows(7).any(|part| part == b"refresh"));
        assert_ne!(sealing.seal("refresh-token", "ada").unwrap(), sealed);
    }
}
