//! The text that a signature covers.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Version line; it changes with the format below.
const VERSION: &str = "LABDATA1-HMAC-SHA256";

/// The parts of a request that are signed.
pub(crate) struct Canonical<'a> {
    /// `PUT` or `GET`; `HEAD` has the signature of `GET`.
    pub(crate) method: &'a str,
    /// The path below the platform's base URL.
    pub(crate) path: &'a str,
    /// Time of expiry, in seconds since 1970.
    pub(crate) expires: i64,
    /// Headers of an upload, names lower-case, sorted by name.
    pub(crate) headers: &'a [(&'a str, &'a str)],
    /// Parameters of a download that shape the response, sorted by name.
    pub(crate) parameters: &'a [(&'a str, &'a str)],
}

/// A key for one purpose.
#[derive(Clone)]
pub(crate) struct Key([u8; 32]);

impl Key {
    /// Derives the key of a purpose from the server's secret.
    pub(crate) fn derive(secret: &[u8; 32], purpose: &str) -> Self {
        let mut mac = mac(secret);
        // A key for each purpose: a signature for a download never permits an upload.
        mac.update(purpose.as_bytes());
        Self(mac.finalize().into_bytes().into())
    }

    /// Signs, in lower-case hexadecimal. `None` if a part has a control character, which could move
    /// the bounds between the parts.
    pub(crate) fn sign(&self, canonical: &Canonical<'_>) -> Option<String> {
        let mac = self.mac(canonical)?;
        Some(base16ct::lower::encode_string(&mac.finalize().into_bytes()))
    }

    /// Returns true if the signature is that of the request. Compares in constant time.
    pub(crate) fn verify(&self, canonical: &Canonical<'_>, signature: &str) -> bool {
        let Some(bytes) = from_hex(signature) else {
            return false;
        };
        self.mac(canonical)
            .is_some_and(|mac| mac.verify_slice(&bytes).is_ok())
    }

    fn mac(&self, canonical: &Canonical<'_>) -> Option<Hmac<Sha256>> {
        let text = canonical.render()?;
        let mut mac = mac(&self.0);
        mac.update(text.as_bytes());
        Some(mac)
    }
}

impl Canonical<'_> {
    fn render(&self) -> Option<String> {
        let mut lines = vec![
            VERSION.to_owned(),
            self.method.to_owned(),
            self.path.to_owned(),
            self.expires.to_string(),
        ];
        lines.extend(
            self.headers
                .iter()
                .map(|(name, value)| format!("{name}:{value}")),
        );
        // Separates headers from parameters, so that one cannot pass for the other.
        lines.push(String::new());
        lines.extend(
            self.parameters
                .iter()
                .map(|(name, value)| format!("{name}={value}")),
        );
        // A line break within a value could forge the next line.
        let clean = !lines.iter().any(|line| line.chars().any(char::is_control));
        clean.then(|| lines.join("\n"))
    }
}

fn mac(key: &[u8; 32]) -> Hmac<Sha256> {
    // HMAC pads a key to the block itself; padded here, no length can be wrong.
    let mut block = [0; 64];
    for (padded, byte) in block.iter_mut().zip(key) {
        *padded = *byte;
    }
    Hmac::new(&block.into())
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    base16ct::lower::decode_vec(text).ok()?.try_into().ok()
}
