//! The provider's keys (RFC 7517), and signatures by them.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PSS_2048_8192_SHA256,
    RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;

/// Algorithms by which tokens may be signed. Neither `none` nor those with a shared secret are among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    /// RSA with PKCS #1 v1.5 and SHA-256.
    Rs256,
    /// RSA-PSS with SHA-256.
    Ps256,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// Ed25519.
    EdDsa,
}

impl Algorithm {
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        match name {
            "RS256" => Some(Self::Rs256),
            "PS256" => Some(Self::Ps256),
            "ES256" => Some(Self::Es256),
            "EdDSA" => Some(Self::EdDsa),
            _ => None,
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Ps256 => "PS256",
            Self::Es256 => "ES256",
            Self::EdDsa => "EdDSA",
        }
    }
}

/// A set of keys, as the provider publishes it.
#[derive(Deserialize)]
pub(crate) struct Jwks {
    /// Those that cannot be read are skipped: a provider may have keys for other purposes.
    keys: Vec<serde_json::Value>,
}

impl Jwks {
    pub(crate) fn keys(self) -> Vec<Jwk> {
        let keys = self.keys.into_iter();
        keys.filter_map(|key| serde_json::from_value(key).ok())
            .collect()
    }
}

/// A public key.
#[derive(Clone, Deserialize)]
pub(crate) struct Jwk {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

fn decoded(part: Option<&String>) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(part?).ok()
}

impl Jwk {
    /// Returns whether the key may have signed a token that names this one.
    pub(crate) fn fits(&self, key_id: Option<&str>) -> bool {
        let is_for_signatures = self
            .purpose
            .as_deref()
            .is_none_or(|purpose| purpose == "sig");
        is_for_signatures && key_id.is_none_or(|id| self.kid.as_deref() == Some(id))
    }

    /// Returns whether the key signed that text with that algorithm. The key must be of the algorithm's type, so that
    /// a token cannot choose how its signature is read.
    pub(crate) fn verifies(&self, algorithm: Algorithm, signed: &str, signature: &[u8]) -> bool {
        let is_for_it = self
            .alg
            .as_deref()
            .is_none_or(|alg| alg == algorithm.as_str());
        is_for_it && self.check(algorithm, signed, signature).is_some()
    }

    fn check(&self, algorithm: Algorithm, signed: &str, signature: &[u8]) -> Option<()> {
        let (signed, curve) = (signed.as_bytes(), self.crv.as_deref());
        match (algorithm, self.kty.as_str()) {
            (Algorithm::Rs256 | Algorithm::Ps256, "RSA") => {
                let key = RsaPublicKeyComponents {
                    n: decoded(self.n.as_ref())?,
                    e: decoded(self.e.as_ref())?,
                };
                let parameters = if algorithm == Algorithm::Rs256 {
                    &RSA_PKCS1_2048_8192_SHA256
                } else {
                    &RSA_PSS_2048_8192_SHA256
                };
                key.verify(parameters, signed, signature).ok()
            }
            (Algorithm::Es256, "EC") if curve == Some("P-256") => {
                // The uncompressed form of a point.
                let point = [
                    vec![4],
                    decoded(self.x.as_ref())?,
                    decoded(self.y.as_ref())?,
                ]
                .concat();
                let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
                key.verify(signed, signature).ok()
            }
            (Algorithm::EdDsa, "OKP") if curve == Some("Ed25519") => {
                let key = UnparsedPublicKey::new(&ED25519, decoded(self.x.as_ref())?);
                key.verify(signed, signature).ok()
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Modulus of a key that openssl made, and its signatures of `signed text`.
    const MODULUS: &str = "pSQEk5Ud_5gFtqm2MnUT37XJqRfL5sPE1ytjo1QZv4TVj10UkhvvkLoO7S6yGKFrerx7O7rI8_vVc6uANMt2FQuBfpvyfSI4JNvxh2QnP0-t4MsAx1xhD7hlyFme1CNY_80lW7vBVE8UkbGIaYKTHwsv4I6O5WZFHfTvmgBP92emlsc03j8wfkPchpbEaCqNw4IKWXnza0KiJavdFOpHvm0Y8wEHzpXG_yEhrUhOYm0OnrlY-lvjySd7HSUOzjQGC5IUuDPl46c5oYdQinNW1tZXCJH7TPv0xNavqJqVAUt3dRgDecoGKGJPj0tXUGRidugpzNK84ksTeoccWaRz5Q";
    const RS256: &str = "Rg4l9PtbQhRl4zytlI2YTBWSoiCazOlGfCyfsKOUlRvKOv569w6FsBHRC1jOcXGDWOMG75yathL03wF0C0uJy_atGZT5YRX5w7cazTFZE0Ugz5ZeGAPvdGQBVOq1JwgH2XidecIYmfs4oNnIVOD1pUicpGTMTq-pF-4WfH6-SvFdCjYEbQwgV41X6NeN578FC1wvzZFlio2zK-6rJ7AU-TGSKbdCe1ptMMgVkkr0x0u0PUhcWFt2Bd4wzQckhvgea9PW4-as7dy7lM1Co5qTidFAEUVRIos2PUc00hyEi6WYUQRKLlp14crj-bWT4X9XYTmTA7Wj3_hnz3bg_kyIsA";
    const PS256: &str = "bG7-eXh4s2eDVrbBkPKxJMjjfVnasohORDV8rl-11M5WxnVWVZ0yQfnpPak2bW72nkWzm6m2hTyG8ltGAy3f5_D2FHSDiNsInJT3ghwhQNKpzuCGQLJSFeBzX6i0cAyRIOmOMWtHDqK4IVQpRP_6TzIDcIdON3ZL03tZVfwnWkxcTW3stViRYlxwMJvcGencpML5AVVY3bCpGbOk24rE1uLOkmCwDu1iQQG4FRgJqBbqkHRdcUV0nk527rGrRlaoL8H1mWJRCf6qWSsID8e_d-eBqOTe2cWB47a8CvlkhmhNZ7p3AsS465b6M6myxwLtFPGDYmPwuCIO37mTHhicag";

    fn key(change: &serde_json::Value) -> Jwk {
        let mut key = json!({"kty": "RSA", "kid": "1", "n": MODULUS, "e": "AQAB"});
        let change = change.as_object().unwrap().clone();
        key.as_object_mut().unwrap().extend(change);
        serde_json::from_value(key).unwrap()
    }

    #[test]
    fn signatures_of_rsa_are_checked_in_the_way_that_the_token_names() {
        let [rs, ps] = [RS256, PS256].map(|signature| URL_SAFE_NO_PAD.decode(signature).unwrap());
        let verifies = |algorithm, text, signature: &[u8]| {
            key(&json!({})).verifies(algorithm, text, signature)
        };
        assert!(verifies(Algorithm::Rs256, "signed text", &rs));
        assert!(verifies(Algorithm::Ps256, "signed text", &ps));
        assert!(!verifies(Algorithm::Rs256, "signed text", &ps));
        assert!(!verifies(Algorithm::Ps256, "signed text", &rs));
        assert!(!verifies(Algorithm::Rs256, "other text", &rs));
        assert!(!verifies(Algorithm::Es256, "signed text", &rs));
        assert!(!verifies(Algorithm::Rs256, "signed text", b""));
        assert!(!key(&json!({"alg": "PS256"})).verifies(Algorithm::Rs256, "signed text", &rs));
    }

    #[test]
    fn a_key_fits_by_its_id_and_purpose() {
        assert!(key(&json!({})).fits(Some("1")));
        assert!(key(&json!({"use": "sig"})).fits(None));
        assert!(!key(&json!({})).fits(Some("2")));
        assert!(!key(&json!({"use": "enc"})).fits(Some("1")));
    }

    #[test]
    fn neither_none_nor_a_shared_secret_is_an_algorithm() {
        for name in [
            "none", "None", "HS256", "HS512", "RS1", "RS512", "ES384", "",
        ] {
            assert_eq!(Algorithm::from_name(name), None, "{name}");
        }
    }
}
